// PCMPESTRI, PCMPESTRM, PCMPISTRI, PCMPISTRM with every control byte, on short texts of few letters.
#pragma GCC target("sse4.2")
#include <stdint.h>
#include <stdio.h>

typedef union {
    uint8_t bytes[16];
    uint16_t words[8];
    uint64_t quadwords[2];
} __attribute__((aligned(16))) vector;

enum { TIMES = 40 };

static uint64_t state = 0x9e3779b97f4a7c15;

static uint64_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545F4914F6CDD1Du;
}

// Few letters, so that there are matches; zeros, so that there are ends; some with the sign bit.
static vector next_text(void) {
    static const uint16_t LETTERS[] = {1, 2, 3, 0x80, 0xff, 0x8001, 0x101, 0x7fff, 0xff80, 0xffff};
    vector text;
    uint64_t kind = next_random() >> 60;
    for (int i = 0; i < 8; i++) {
        uint64_t random = next_random() >> 8;
        text.words[i] = kind < 4 ? LETTERS[random % 10] : (uint16_t)((random % 3 + 1) | (random >> 8) % 3 << 8);
        if (kind & 1 && random >> 20 < 1ull << 32) text.words[i] &= random & 1 << 16 ? 0xff00 : 0;
    }
    return text;
}

static uint64_t next_length(void) {
    static const uint64_t LENGTHS[] = {0, 1,     7,     8,      9,          15,         16,          17,    3,
                                       5, ~0ull, -8ull, -16ull, 1ull << 31, 1ull << 63, 0x100000003, -3ull, 0xffffffff};
    return LENGTHS[(next_random() >> 8) % (sizeof LENGTHS / sizeof *LENGTHS)];
}

static void mix(uint64_t* sum, uint64_t value) { *sum = (*sum ^ value) * 0x100000001b3u; }

// Each instruction with all its control bytes, 16 bytes apart.
enum { CONTROLS = 128, STUB_BYTES = 16 };
#define STUBS(label, instruction)                                                            \
    extern const char label[];                                                               \
    asm(".pushsection .text; .balign 16;" #label ": .set control, 0; .rept 128;" instruction \
        " $control, %xmm2, %xmm1; ret; .balign 16; .set control, control + 1; .endr; .popsection")
STUBS(estri, "pcmpestri");
STUBS(estri_64, "rex.w pcmpestri");
STUBS(estrm, "pcmpestrm");
STUBS(estrm_64, "rex.w pcmpestrm");
STUBS(istri, "pcmpistri");
STUBS(istrm, "pcmpistrm");

static void try_all(const char* name, const char* stubs) {
    for (int control = 0; control < CONTROLS; control++) {
        uint64_t sum = 0;
        for (int i = 0; i < TIMES; i++) {
            vector wanted = next_text(), text = next_text(), mask;
            uint64_t lengths[2] = {next_length(), next_length()}, index = ~0ull, flags;
            if (i % 4 == 0) text = wanted;
            asm volatile(
                "mov %5, %%rax; mov %6, %%rdx; movaps %3, %%xmm1; movaps %4, %%xmm2; movaps %3, %%xmm0; mov %0, %%rcx;"
                "call *%7; pushfq; popq %1; mov %%rcx, %0; movaps %%xmm0, %2"
                : "+m"(index), "=m"(flags), "=m"(mask)
                : "m"(wanted), "m"(text), "m"(lengths[0]), "m"(lengths[1]), "r"(stubs + STUB_BYTES * control)
                : "rax", "rcx", "rdx", "xmm0", "xmm1", "xmm2", "cc", "memory");
            mix(&sum, mask.quadwords[0]);
            mix(&sum, mask.quadwords[1]);
            mix(&sum, index);
            mix(&sum, flags & 0x8d5);
        }
        printf("%s %#x: %016lx\n", name, control, sum);
    }
}

int main(void) {
    try_all("pcmpestri", estri);
    try_all("pcmpestri, 64-bit lengths", estri_64);
    try_all("pcmpestrm", estrm);
    try_all("pcmpestrm, 64-bit lengths", estrm_64);
    try_all("pcmpistri", istri);
    try_all("pcmpistrm", istrm);
    return 0;
}
