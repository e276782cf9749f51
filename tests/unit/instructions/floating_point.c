// What SSE's instructions on floating-point numbers compute and raise, on random and special numbers, in all modes.
#pragma GCC target("sse4.2")
#include <stdint.h>
#include <stdio.h>

typedef union {
    uint32_t doublewords[4];
    uint64_t quadwords[2];
} __attribute__((aligned(16))) vector;

enum { TIMES = 60, ORDINARY_CONTROL = 0x1f80 };
// Rounding, flush to zero, denormals are zeros; with nothing raised, and with what is nearly always raised.
static const uint32_t CONTROLS[] = {0x1f80, 0x1fa0, 0x3f80, 0x5fa0, 0x7f80, 0x9f80, 0x1fc0, 0x9fc0, 0xdfe0, 0x7fa0};
static const uint32_t SPECIAL_32[] = {0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x00800000,
                                      0x00800001, 0x3f800000, 0xbf800000, 0x3f800001, 0x7f7fffff, 0xff7fffff,
                                      0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7fc12345, 0x7f812345,
                                      0xff800001, 0x4f000000, 0xcf000000, 0x4effffff, 0x5f000000, 0xdf000000,
                                      0x3f000000, 0x3effffff, 0x40200000, 0x01000000, 0x4b000001, 0x4b7fffff};
static const uint64_t SPECIAL_64[] = {0,
                                      1ull << 63,
                                      1,
                                      0x8000000000000001,
                                      0x000fffffffffffff,
                                      0x0010000000000000,
                                      0x0010000000000001,
                                      0x3ffull << 52,
                                      0xbffull << 52,
                                      0x3ff0000000000001,
                                      0x7fefffffffffffff,
                                      0xffefffffffffffff,
                                      0x7ffull << 52,
                                      0xfffull << 52,
                                      0x7ff8000000000000,
                                      0xfff8000000000000,
                                      0x7ff8123456789abc,
                                      0x7ff0123456789abc,
                                      0xfff0000000000001,
                                      0x41e0000000000000,
                                      0xc1e0000000000000,
                                      0xc1e0000000200000,
                                      0x41dfffffffc00000,
                                      0x43e0000000000000,
                                      0xc3e0000000000000,
                                      0x3fe0000000000000,
                                      0x4004000000000000,
                                      0x3810000000000000,
                                      0x380fffffffffffff,
                                      0x36a0000000000000,
                                      0x47efffffefffffff,
                                      0x47effffff0000000,
                                      0x4330000000000001,
                                      0x0020000000000000};

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545F4914F6CDD1Du;
}

// Special, any, of few bits, near to one.
static uint32_t next_32(void) {
    uint64_t choice = next_random();
    uint32_t any = (uint32_t)next_random();
    switch (choice & 3) {
        case 0: return SPECIAL_32[(choice >> 8) % (sizeof SPECIAL_32 / sizeof *SPECIAL_32)];
        case 1: return any;
        case 2: return 0x3f800000 + (any & 0xfff) * 0x1000;
        default: return (any & 0x807fffff) | (uint32_t)(117 + (choice >> 8) % 20) << 23;
    }
}

static uint64_t next_64(void) {
    uint64_t choice = next_random(), any = next_random();
    switch (choice & 3) {
        case 0: return SPECIAL_64[(choice >> 8) % (sizeof SPECIAL_64 / sizeof *SPECIAL_64)];
        case 1: return any;
        case 2: return (0x3ffull << 52) + (any & 0xfff) * (1ull << 40);
        default: return (any & 0x800fffffffffffff) | (1003 + (choice >> 8) % 40) << 52;
    }
}

static vector next_vector(int bits) {
    vector result;
    for (int i = 0; i < 128 / bits; i++)
        if (bits == 32)
            result.doublewords[i] = next_32();
        else
            result.quadwords[i] = next_64();
    return result;
}

static void mix(uint64_t* sum, uint64_t value) { *sum = (*sum ^ value) * 0x100000001b3u; }

#define TRY(name, bits, instruction)                                                                                 \
    do {                                                                                                             \
        for (unsigned control = 0; control < sizeof CONTROLS / sizeof *CONTROLS; control++) {                        \
            uint64_t sum = 0;                                                                                        \
            for (int i = 0; i < TIMES; i++) {                                                                        \
                vector first = next_vector(bits), second = next_vector(bits);                                        \
                uint32_t ordinary = ORDINARY_CONTROL, now;                                                           \
                uint64_t general = next_random(), flags;                                                             \
                asm volatile(                                                                                        \
                    "movaps %0, %%xmm1; movaps %4, %%xmm2; mov %1, %%rax; ldmxcsr %5; xor %%ecx, %%ecx;" instruction \
                    "; pushfq; popq %2; stmxcsr %3; ldmxcsr %6; movaps %%xmm1, %0; mov %%rax, %1"                    \
                    : "+m"(first), "+m"(general), "=m"(flags), "=m"(now)                                             \
                    : "m"(second), "m"(CONTROLS[control]), "m"(ordinary)                                             \
                    : "xmm1", "xmm2", "rax", "rcx", "cc", "memory");                                                 \
                mix(&sum, first.quadwords[0]);                                                                       \
                mix(&sum, first.quadwords[1]);                                                                       \
                mix(&sum, general);                                                                                  \
                mix(&sum, flags & 0x8d5);                                                                            \
                mix(&sum, now);                                                                                      \
            }                                                                                                        \
            printf("%s under %#x: %016lx\n", name, CONTROLS[control], sum);                                          \
        }                                                                                                            \
    } while (0)
#define TRY_PACKED(name)                          \
    TRY(name "ps", 32, name "ps %%xmm2, %%xmm1"); \
    TRY(name "pd", 64, name "pd %%xmm2, %%xmm1")
#define TRY_ALL(name)                             \
    TRY_PACKED(name);                             \
    TRY(name "ss", 32, name "ss %%xmm2, %%xmm1"); \
    TRY(name "sd", 64, name "sd %%xmm2, %%xmm1")
#define TRY_VECTOR(name, bits) TRY(name, bits, name " %%xmm2, %%xmm1")
#define TRY_GENERAL(name, bits)             \
    TRY(name, bits, name " %%xmm2, %%eax"); \
    TRY(name "q", bits, name " %%xmm2, %%rax")
#define TRY_ROUND(mode)                                            \
    TRY("roundps " mode, 32, "roundps $" mode ", %%xmm2, %%xmm1"); \
    TRY("roundsd " mode, 64, "roundsd $" mode ", %%xmm2, %%xmm1")

static void arithmetic(void) {
    TRY_ALL("add");
    TRY_ALL("sub");
    TRY_ALL("mul");
    TRY_ALL("div");
    TRY_ALL("sqrt");
    TRY_ALL("min");
    TRY_ALL("max");
    TRY_PACKED("hadd");
    TRY_PACKED("hsub");
    TRY_PACKED("addsub");
}

static void comparisons(void) {
    TRY_ALL("cmpeq");
    TRY_ALL("cmplt");
    TRY_ALL("cmple");
    TRY_ALL("cmpunord");
    TRY_ALL("cmpneq");
    TRY_ALL("cmpnlt");
    TRY_ALL("cmpnle");
    TRY_ALL("cmpord");
    TRY_VECTOR("comiss", 32);
    TRY_VECTOR("comisd", 64);
    TRY_VECTOR("ucomiss", 32);
    TRY_VECTOR("ucomisd", 64);
}

static void conversions(void) {
    TRY_VECTOR("cvtps2pd", 32);
    TRY_VECTOR("cvtss2sd", 32);
    TRY_VECTOR("cvtpd2ps", 64);
    TRY_VECTOR("cvtsd2ss", 64);
    TRY_VECTOR("cvtdq2ps", 32);
    TRY_VECTOR("cvtdq2pd", 32);
    TRY_VECTOR("cvtps2dq", 32);
    TRY_VECTOR("cvttps2dq", 32);
    TRY_VECTOR("cvtpd2dq", 64);
    TRY_VECTOR("cvttpd2dq", 64);
    TRY_GENERAL("cvtss2si", 32);
    TRY_GENERAL("cvttss2si", 32);
    TRY_GENERAL("cvtsd2si", 64);
    TRY_GENERAL("cvttsd2si", 64);
    TRY("cvtsi2ss", 32, "cvtsi2ss %%eax, %%xmm1");
    TRY("cvtsi2sd", 64, "cvtsi2sd %%eax, %%xmm1");
    TRY("cvtsi2ssq", 32, "cvtsi2ss %%rax, %%xmm1");
    TRY("cvtsi2sdq", 64, "cvtsi2sd %%rax, %%xmm1");
    TRY("cvtps2pi", 32, "cvtps2pi %%xmm2, %%mm0; movq %%mm0, %%rax; emms");
    TRY("cvttpd2pi", 64, "cvttpd2pi %%xmm2, %%mm0; movq %%mm0, %%rax; emms");
    TRY("cvtpi2ps", 32, "movdq2q %%xmm2, %%mm0; cvtpi2ps %%mm0, %%xmm1; emms");
    TRY_ROUND("0");
    TRY_ROUND("1");
    TRY_ROUND("2");
    TRY_ROUND("3");
    TRY_ROUND("4");
    TRY_ROUND("12");
}

int main(void) {
    arithmetic();
    comparisons();
    conversions();
    return 0;
}
