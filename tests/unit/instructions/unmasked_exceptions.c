// SSE's floating-point exceptions, masked or not: what is raised, what a program is told, and that nothing is written.
#pragma GCC target("sse4.2")
#define _GNU_SOURCE
#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

enum { MASKED = 0x1f80, FIRST_MASK = 0x80, EXCEPTIONS = 6 };

static sigjmp_buf back;
static siginfo_t told;
static ucontext_t stopped;
static struct _libc_fpstate stopped_unit;
static long started_at;

static void on_signal(int signal, siginfo_t* info, void* frame) {
    told = *info;
    stopped = *(ucontext_t*)frame;
    stopped_unit = *stopped.uc_mcontext.fpregs;
    siglongjmp(back, 1);
}

static const uint64_t one = 0x3ff0000000000000, three = 0x4008000000000000, zero = 0, most = 0x7fefffffffffffff,
                      least = 0x0010000000000000, denormal = 1, minus_one = 0xbff0000000000000,
                      half = 0x3fe0000000000000, above_one = 0x3ff4000000000000, signalling = 0x7ff0000000000001,
                      quiet = 0x7ff8000000000001;

static void show(const char* what, uint32_t control, const char* a, const char* b, uint32_t now, const void* result) {
    uint64_t words[2];
    memcpy(words, result, sizeof words);
    printf("%s %s %s under %#x: %#x %016lx %016lx", what, a, b, control, now, words[0], words[1]);
}

#define TRY(instruction, a, b)                                                                               \
    do {                                                                                                     \
        uint64_t first[2] = {a, a}, second[2] = {b, b};                                                      \
        uint32_t ordinary = MASKED, now;                                                                     \
        if (!sigsetjmp(back, 1)) {                                                                           \
            asm volatile(                                                                                    \
                "movups %1, %%xmm1; movups %3, %%xmm2; lea 1f(%%rip), %%rax; mov %%rax, %0; ldmxcsr %4; "    \
                "1:" instruction "; stmxcsr %2; ldmxcsr %5; movups %%xmm1, %1"                               \
                : "=m"(started_at), "+m"(first), "=m"(now)                                                   \
                : "m"(second), "m"(control), "m"(ordinary)                                                   \
                : "rax", "xmm1", "xmm2", "memory", "cc");                                                    \
            show(instruction, control, #a, #b, now, first);                                                  \
            printf("\n");                                                                                    \
        } else {                                                                                             \
            asm volatile("ldmxcsr %0" ::"m"(ordinary));                                                      \
            greg_t* registers = stopped.uc_mcontext.gregs;                                                   \
            show(instruction, control, #a, #b, stopped_unit.mxcsr, &stopped_unit._xmm[1]);                   \
            printf(", signal %d code %d trap %lld at +%lld, address +%ld\n", told.si_signo, told.si_code,    \
                   registers[REG_TRAPNO], registers[REG_RIP] - started_at, (long)told.si_addr - started_at); \
        }                                                                                                    \
    } while (0)

static void try_all(volatile uint32_t control) {
    TRY("divpd %%xmm2, %%xmm1", one, zero);
    TRY("divsd %%xmm2, %%xmm1", one, three);
    TRY("divsd %%xmm2, %%xmm1", denormal, zero);
    TRY("mulsd %%xmm2, %%xmm1", most, most);
    TRY("mulpd %%xmm2, %%xmm1", least, least);
    TRY("mulsd %%xmm2, %%xmm1", least, half);
    TRY("mulpd %%xmm2, %%xmm1", denormal, one);
    TRY("addsd %%xmm2, %%xmm1", signalling, one);
    TRY("addsd %%xmm2, %%xmm1", quiet, one);
    TRY("sqrtsd %%xmm2, %%xmm1", one, minus_one);
    TRY("cvtsd2ss %%xmm2, %%xmm1", one, most);
    TRY("cvttsd2si %%xmm2, %%rcx", one, most);
    TRY("comisd %%xmm2, %%xmm1", quiet, one);
    TRY("ucomisd %%xmm2, %%xmm1", quiet, one);
    TRY("ucomisd %%xmm2, %%xmm1", denormal, one);
    TRY("roundsd $0, %%xmm2, %%xmm1", one, above_one);
    TRY("roundsd $8, %%xmm2, %%xmm1", one, above_one);
    TRY("minpd %%xmm2, %%xmm1", denormal, quiet);
    TRY("cmpltpd %%xmm2, %%xmm1", one, quiet);
    TRY("dppd $0xff, %%xmm2, %%xmm1", most, most);
    TRY("haddpd %%xmm2, %%xmm1", most, most);
}

static void show_flags(const char* what) {
    printf("%s: invalid %d, by zero %d, overflow %d, underflow %d, inexact %d\n", what, !!fetestexcept(FE_INVALID),
           !!fetestexcept(FE_DIVBYZERO), !!fetestexcept(FE_OVERFLOW), !!fetestexcept(FE_UNDERFLOW),
           !!fetestexcept(FE_INEXACT));
    feclearexcept(FE_ALL_EXCEPT);
}

static void use_library(void) {
    volatile double x = 1, y = 0, z = 1e308, w = 3;
    feclearexcept(FE_ALL_EXCEPT);
    y = x / y;
    show_flags("1 / 0");
    y = z * z;
    show_flags("1e308 * 1e308");
    y = (1 / z) * (1 / z);
    show_flags("1e-308 * 1e-308");
    y = x / w;
    show_flags("1 / 3");
    y = x + w;
    show_flags("1 + 3");
    for (int rounding = 0; rounding < 4; rounding++) {
        static const int MODES[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
        fesetround(MODES[rounding]);
        printf("%.20g %.20g %d\n", x / w, -x / w, fegetround());
    }
    fesetround(FE_TONEAREST);
    feenableexcept(FE_DIVBYZERO);
    y = 0;
    if (!sigsetjmp(back, 1)) {
        y = x / y;
        printf("nothing\n");
    }
    printf("signal %d code %d, enabled %d\n", told.si_signo, told.si_code, fegetexcept() == FE_DIVBYZERO);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGFPE, &action, 0);
    try_all(MASKED);
    for (int exception = 0; exception < EXCEPTIONS; exception++) try_all(MASKED & ~(FIRST_MASK << exception));
    try_all(0);
    try_all(0x9fc0);  // FTZ and DAZ
    try_all(0x7f80);  // toward zero
    use_library();
    return 0;
}
