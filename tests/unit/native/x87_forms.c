// Runs every x87 instruction on random and edge states, and says what it left: one line a form, or, with the form's
// name, one line a case. Run as a guest and on the host, the lines are the same.
// Arguments: rounds [form]
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "x87_operands.h"

struct Image {  // of FRSTOR
    uint16_t control, r0, status, r1, tags, r2;
    uint32_t rest[4];
    Extended registers[8];
} __attribute__((packed));

struct Area {  // of FXSAVE
    uint16_t control, status;
    uint8_t tags;
    uint8_t rest[27];
    uint8_t registers[8][16];
    uint8_t more[352];
} __attribute__((aligned(16)));

static uint64_t random_significand(void) {
    switch (below(6)) {
        case 0: return 0;
        case 1: return 1ull << below(64);
        case 2: return -(1ull << below(64));
        case 3: return random_bits() >> below(64);
        case 4: return random_bits() << below(64);
        default: return random_bits();
    }
}
static int random_exponent(int special, int near) {
    switch (below(10)) {
        case 0: return 0;
        case 1: return special;
        case 2: return 1 + (int)below(3);
        case 3: return special - 1 - (int)below(3);
        case 4: return (int)below(special + 1);
        default: return special / 2 + (int)below(2 * near) - near;
    }
}
static Extended random_extended(void) {
    Extended result;
    int exponent = random_exponent(0x7fff, 70);
    uint64_t significand = random_significand();
    if (below(24)) significand = (significand & ~(1ull << 63)) | (uint64_t)(exponent != 0) << 63;
    result.significand = significand;
    result.sign_exponent = (uint16_t)(exponent | (int)below(2) << 15);
    return result;
}
static Extended special(void) {
    static const Extended NUMBERS[] = {
        {0, 0},      {1ull << 63, 0x7fff}, {3ull << 62, 0x7fff}, {5ull << 61, 0x7fff}, {7ull << 61, 0x7fff},
        {1, 0x7fff}, {1, 0x3fff},
    };
    Extended result = NUMBERS[below(sizeof NUMBERS / sizeof *NUMBERS)];
    result.sign_exponent |= (uint16_t)(below(2) << 15);
    return result;
}
static void random_memory(uint8_t* memory) {
    Extended extended = random_extended();
    uint64_t bits = random_bits(), sign = below(2);
    memset(memory, 0x5a, 16);
    switch (below(6)) {
        case 0:  // binary32
            bits = sign << 31 | (uint64_t)random_exponent(0xff, 40) << 23 | random_significand() >> 41;
            memcpy(memory, &bits, 8);
            break;
        case 1:  // binary64
            bits = sign << 63 | (uint64_t)random_exponent(0x7ff, 60) << 52 | random_significand() >> 12;
            memcpy(memory, &bits, 8);
            break;
        case 2:  // packed decimal
            for (int i = 0; i < 10; i++) memory[i] = (uint8_t)(below(10) << 4 | below(10));
            memory[9] = (uint8_t)(sign << 7);
            break;
        case 3:  // an integer
            bits = random_significand();
            memcpy(memory, &bits, 8);
            break;
        default: memcpy(memory, &extended, sizeof extended);
    }
}

static struct Image image;
static struct Area before, after;
static uint8_t memory[32] __attribute__((aligned(16)));
static uint64_t flags;

#define RUN(NAME, INSTRUCTION)                                                                         \
    static void NAME(void) {                                                                           \
        asm volatile("frstor %3\npushq %5\npopfq\n" INSTRUCTION "\npushfq\npopq %2\nfxsave %0\nfninit" \
                     : "=m"(after), "+m"(memory), "=&r"(flags)                                         \
                     : "m"(image), "m"(before), "r"(flags)                                             \
                     : "memory", "cc", "rax");                                                         \
    }

#define NULLARY(F)                                                                                               \
    F(fsqrt)                                                                                                     \
    F(frndint)                                                                                                   \
    F(fscale)                                                                                                    \
    F(fxtract) F(fprem) F(fprem1) F(fchs) F(fabs) F(ftst) F(fxam) F(fld1) F(fldl2t) F(fldl2e) F(fldpi) F(fldlg2) \
        F(fldln2) F(fldz) F(fincstp) F(fdecstp) F(fnop) F(fucompp) F(fcompp) F(fninit) F(fnclex)
#define TRANSCENDENTAL(F) F(f2xm1) F(fyl2x) F(fyl2xp1) F(fpatan) F(fsin) F(fcos) F(fsincos) F(fptan)
#define STACK(F) F(fadd) F(fmul) F(fsub) F(fsubr) F(fdiv) F(fdivr)
#define POPPING(F) \
    F(faddp)       \
    F(fmulp)       \
    F(fsubp) F(fsubrp) F(fdivp) F(fdivrp) F(fst) F(fstp) F(fld) F(fxch) F(ffree) F(fcom) F(fcomp) F(fucom) F(fucomp)
#define COMPARING(F) F(fcomi) F(fcomip) F(fucomi) F(fucomip)
#define CONDITIONAL(F) F(fcmovb) F(fcmove) F(fcmovbe) F(fcmovu) F(fcmovnb) F(fcmovne) F(fcmovnbe) F(fcmovnu)
#define MEMORY(F)                                                                                                     \
    F(fadds)                                                                                                          \
    F(fmuls)                                                                                                          \
    F(fsubs)                                                                                                          \
    F(fsubrs) F(fdivs) F(fdivrs) F(fcoms) F(fcomps) F(faddl) F(fmull) F(fsubl) F(fsubrl) F(fdivl) F(fdivrl) F(fcoml)  \
        F(fcompl) F(fiadds) F(fimuls) F(fisubs) F(fisubrs) F(fidivs) F(fidivrs) F(ficoms) F(ficomps) F(fiaddl)        \
            F(fimull) F(fisubl) F(fisubrl) F(fidivl) F(fidivrl) F(ficoml) F(ficompl) F(flds) F(fldl) F(fldt) F(filds) \
                F(fildl) F(fildll) F(fbld) F(fldcw)
#define STORING(F)                                                                                                \
    F(fsts)                                                                                                       \
    F(fstl)                                                                                                       \
    F(fstps)                                                                                                      \
    F(fstpl) F(fstpt) F(fists) F(fistl) F(fistps) F(fistpl) F(fistpll) F(fisttps) F(fisttpl) F(fisttpll) F(fbstp) \
        F(fnstsw) F(fnstcw)

#define DEFINE_NULLARY(N) RUN(run_##N, #N)
#define DEFINE_STACK(N) RUN(run_##N##_top, #N " %%st(3), %%st") RUN(run_##N##_other, #N " %%st, %%st(2)")
#define DEFINE_POPPING(N) RUN(run_##N, #N " %%st(1)")
#define DEFINE_COMPARING(N) RUN(run_##N, #N " %%st(1), %%st")
#define DEFINE_MEMORY(N) RUN(run_##N, #N " %1")
NULLARY(DEFINE_NULLARY)
TRANSCENDENTAL(DEFINE_NULLARY)
STACK(DEFINE_STACK)
POPPING(DEFINE_POPPING)
COMPARING(DEFINE_COMPARING)
CONDITIONAL(DEFINE_COMPARING)
MEMORY(DEFINE_MEMORY)
STORING(DEFINE_MEMORY)

struct Form {
    const char* name;
    void (*run)(void);
    enum { ANY_STATE, ALL_MASKED, NONE_EMPTY, SPECIAL_OPERANDS } states;
};
#define ROW(N) {#N, run_##N, ANY_STATE},
#define ROWS_STACK(N) {#N "_top", run_##N##_top, ANY_STATE}, {#N "_other", run_##N##_other, ANY_STATE},
// A store that an unmasked exception prevents raises #MF here at once, not with the next instruction.
#define ROW_STORING(N) {#N, run_##N, ALL_MASKED},
// What these make of numbers is rounded, and processors differ there: x87_functions.c.
#define ROW_TRANSCENDENTAL(N) {#N, run_##N, SPECIAL_OPERANDS},
// A move whose condition does not hold does not look at the registers here.
#define ROW_CONDITIONAL(N) {#N, run_##N, NONE_EMPTY},
static const struct Form FORMS[] = {NULLARY(ROW) TRANSCENDENTAL(ROW_TRANSCENDENTAL) STACK(ROWS_STACK) POPPING(ROW)
                                        COMPARING(ROW) CONDITIONAL(ROW_CONDITIONAL) MEMORY(ROW) STORING(ROW_STORING)};

static void random_state(int states) {
    static const int PRECISIONS[] = {0, 2, 3, 3};
    unsigned masks = states == ALL_MASKED || below(3) ? 0x3f : (unsigned)below(64);
    image.control = (uint16_t)(masks | 0x40 | PRECISIONS[below(4)] << 8 | (int)below(4) << 10);
    image.status = (uint16_t)((below(2) ? random_bits() & 0x477f & (masks | 0x4740) : 0) | below(8) << 11);
    image.tags = states == NONE_EMPTY || below(6) ? 0 : (uint16_t)random_bits();
    if (below(2) && states != NONE_EMPTY) image.tags |= (uint16_t)(3 << 2 * (((image.status >> 11) - 1) & 7));
    for (int i = 0; i < 8; i++) image.registers[i] = i && !below(8) ? image.registers[0] : random_extended();
    if (states == SPECIAL_OPERANDS) {
        image.control |= 0x300;
        image.control &= (uint16_t)~0xc00;
        for (int i = 0; i < 8; i++) image.registers[i] = special();
    }
    random_memory(memory);
    flags = 0x202 | (random_bits() & 0x8d5);
}

static uint64_t mix(uint64_t hash, const void* data, size_t size) {
    for (size_t i = 0; i < size; i++) hash = (hash ^ ((const uint8_t*)data)[i]) * 0x100000001b3;
    return hash;
}
static void print_bytes(const char* what, const void* data, size_t size) {
    printf(" %s ", what);
    for (size_t i = size; i-- > 0;) printf("%02x", ((const uint8_t*)data)[i]);
}

int main(int count, char** arguments) {
    const int rounds = atoi(arguments[1]);
    for (size_t f = 0; f < sizeof FORMS / sizeof *FORMS; f++) {
        const struct Form* form = &FORMS[f];
        const int chosen = count > 2 && !strcmp(arguments[2], form->name);
        uint64_t hash = 0xcbf29ce484222325;
        state = 0x9e3779b97f4a7c15 + f;
        if (count > 2 && !chosen) continue;
        for (int i = 0; i < rounds; i++) {
            random_state(form->states);
            memset(&after, 0, sizeof after);
            if (chosen) {
                printf("control %04x status %04x tags %04x", image.control, image.status, image.tags);
                print_bytes("memory", memory, 10);
                for (int r = 0; r < 4; r++) print_bytes("st", &image.registers[r], 10);
            }
            form->run();
            const uint64_t visible = flags & 0x8d5;
            hash = mix(hash, &after.control, 5);
            hash = mix(hash, after.registers, sizeof after.registers);
            hash = mix(hash, memory, 16);
            hash = mix(hash, &visible, 8);
            if (!chosen) continue;
            printf(" -> control %04x status %04x tags %02x", after.control, after.status, after.tags);
            print_bytes("memory", memory, 16);
            printf(" flags %lx", visible);
            for (int r = 0; r < 8; r++) print_bytes("st", after.registers[r], 10);
            printf("\n");
        }
        printf("%s %016lx\n", form->name, hash);
    }
    return 0;
}
