// Prints what the C library's functions of long doubles give, to the last bit, and x87's state in a signal handler.
#define _GNU_SOURCE
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

typedef long double (*Unary)(long double);
typedef long double (*Binary)(long double, long double);
static const struct {
    const char* name;
    Unary function;
} UNARY[] = {
    {"sqrtl", sqrtl},     {"cbrtl", cbrtl}, {"expl", expl},     {"exp2l", exp2l},   {"expm1l", expm1l},
    {"logl", logl},       {"log2l", log2l}, {"log10l", log10l}, {"log1pl", log1pl}, {"sinl", sinl},
    {"cosl", cosl},       {"tanl", tanl},   {"asinl", asinl},   {"acosl", acosl},   {"atanl", atanl},
    {"sinhl", sinhl},     {"coshl", coshl}, {"tanhl", tanhl},   {"erfl", erfl},     {"tgammal", tgammal},
    {"lgammal", lgammal}, {"rintl", rintl}, {"floorl", floorl}, {"logbl", logbl},
};
static const struct {
    const char* name;
    Binary function;
} BINARY[] = {{"powl", powl}, {"fmodl", fmodl}, {"remainderl", remainderl}, {"atan2l", atan2l}, {"hypotl", hypotl}};
static const long double OPERANDS[] = {0.0L,  -0.0L, 0.1L,    -0.75L, 1.0L,  1.3L,
                                       -2.5L, 3.0L,  100.25L, 1e-30L, 1e30L, -1e18L};
#define COUNT(array) (sizeof(array) / sizeof *(array))

static void print(const char* name, long double x, long double y, long double result) {
    unsigned char bytes[16] = {0};
    memcpy(bytes, &result, 10);
    if (isnan(result)) bytes[9] &= 0x7f;
    printf("%s %Lg %Lg ", name, x, y);
    for (int i = 9; i >= 0; i--) printf("%02x", bytes[i]);
    printf(" flags %x\n", fetestexcept(FE_ALL_EXCEPT));
    feclearexcept(FE_ALL_EXCEPT);
}

static jmp_buf back;
static void on_error(int signal, siginfo_t* info, void* context) {
    const ucontext_t* user = context;
    const struct _libc_fpstate* state = user->uc_mcontext.fpregs;
    printf("signal %d code %d trap %lld at +%ld, control %04x status %04x tags %02x", signal, info->si_code,
           user->uc_mcontext.gregs[REG_TRAPNO], (long)info->si_addr - (long)user->uc_mcontext.gregs[REG_RIP],
           state->cwd, state->swd, state->ftw & 0xff);
    for (int i = 0; i < 2; i++)
        printf(" %04x:%04x%04x%04x%04x", state->_st[i].exponent, state->_st[i].significand[3],
               state->_st[i].significand[2], state->_st[i].significand[1], state->_st[i].significand[0]);
    unsigned short control;
    asm volatile("fnstcw %0" : "=m"(control));
    printf(", now %04x\n", control);
    asm volatile("fninit");
    longjmp(back, 1);
}

// `instructions` with a in ST(0) and b in ST(1), then one that waits, with `unmasked`.
#define UNMASKED(INSTRUCTIONS, UNMASKED_BITS, A, B)                                             \
    if (!setjmp(back)) {                                                                        \
        const long double a = A, b = B;                                                         \
        const unsigned short control = 0x37f & ~(UNMASKED_BITS);                                \
        asm volatile("fninit\nfldt %1\nfldt %0\nfldcw %2\n" INSTRUCTIONS "\nnop\nfwait\nfninit" \
                     :                                                                          \
                     : "m"(a), "m"(b), "m"(control));                                           \
        printf("no signal\n");                                                                  \
    }

static volatile sig_atomic_t handled;
static void on_alarm(int signal) {
    (void)signal;
    asm volatile("fninit\nfldpi\nfldl2e\nfldcw %0" : : "m"((unsigned short){0x0c40}));
    handled = 1;
}

int main(void) {
    for (size_t f = 0; f < COUNT(UNARY); f++)
        for (size_t i = 0; i < COUNT(OPERANDS); i++) {
            const volatile long double x = OPERANDS[i];
            print(UNARY[f].name, x, 0, UNARY[f].function(x));
        }
    for (size_t f = 0; f < COUNT(BINARY); f++)
        for (size_t i = 0; i < COUNT(OPERANDS); i++)
            for (size_t j = 0; j < COUNT(OPERANDS); j++) {
                const volatile long double x = OPERANDS[i], y = OPERANDS[j];
                print(BINARY[f].name, x, y, BINARY[f].function(x, y));
            }

    const struct sigaction action = {.sa_sigaction = on_error, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGFPE, &action, NULL);
    UNMASKED("fdivp", 0x04, 0.0L, 1.0L)
    UNMASKED("fsqrt", 0x01, -1.0L, 1.0L)
    UNMASKED("fmulp", 0x08, 1e4000L, 1e4000L)
    UNMASKED("fmulp", 0x10, 1e-4000L, 1e-4000L)
    UNMASKED("fdivp", 0x20, 3.0L, 1.0L)
    UNMASKED("fstp %%st(0)\nfstp %%st(0)\nfstp %%st(0)", 0x01, 3.0L, 1.0L)
    UNMASKED("fmulp", 0x02, 1e-4940L, 1.0L)
    UNMASKED("fmulp", 0x00, 1e4000L, 1e4000L)

    // A handler's own x87 state is gone when it returns, and the program's is there.
    const struct sigaction other = {.sa_handler = on_alarm};
    sigaction(SIGUSR1, &other, NULL);
    const long double a = 0.1L, b = 1e-4940L;
    long double c = 0, d = 0;
    unsigned short control = 0x0b7f, status = 0;
    asm volatile("fninit\nfldt %1\nfldt %0\nfldcw %2\nfld %%st(0)\nfmulp" : : "m"(a), "m"(b), "m"(control));
    raise(SIGUSR1);
    asm volatile("fnstsw %0\nfnstcw %1\nfstpt %2\nfstpt %3\nfninit" : "=m"(status), "=m"(control), "=m"(c), "=m"(d));
    printf("handled %d status %04x control %04x %La %La\n", handled, status, control, c, d);
    return 0;
}
