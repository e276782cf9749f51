// Which instructions wait for an exception of the x87 that is pending, and which make its registers MMX's.
// CVTPI2PS from memory is not here: processors differ.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>

static sigjmp_buf back;
static volatile int told;
static const int32_t PAIR[2] = {9720, -1};
static const double NUMBERS[2] __attribute__((aligned(16))) = {2.5, -7};

static void on_signal(int signal, siginfo_t* info, void* frame) {
    told = info->si_code;
    siglongjmp(back, 1);
}

static uint16_t tags(void) {
    uint32_t environment[7];
    asm volatile("fnstenv %0" : "=m"(environment));
    return environment[2];
}

// The x87 has divided by zero, and tells of that or not.
#define TRY(instruction, masks)                                                                                   \
    do {                                                                                                          \
        uint16_t control = masks;                                                                                 \
        double vector[2] = {0.5, 0.25};                                                                           \
        told = 0;                                                                                                 \
        if (!sigsetjmp(back, 1))                                                                                  \
            asm volatile(                                                                                         \
                "fninit; fldcw %1; movups %0, %%xmm1; fld1; fldz; fdivrp; " instruction "; movups %%xmm1, %0"     \
                : "+m"(vector)                                                                                    \
                : "m"(control), "m"(PAIR), "m"(NUMBERS)                                                           \
                : "rax", "xmm1", "memory", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)");  \
        printf("%s under %#x: code %d, tags %#x, %g %g\n", instruction, masks, told, tags(), vector[0], vector[1]); \
        asm volatile("fninit");                                                                                   \
    } while (0)

int main(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGFPE, &action, 0);
    for (int masked = 0; masked < 2; masked++) {
        int masks = masked ? 0x37f : 0x37b;
        TRY("nop", masks);
        TRY("cvtpi2pd %2, %%xmm1", masks);
        TRY("rex.w cvtpi2pd %2, %%xmm1", masks);
        TRY("cvtpi2pd %%mm3, %%xmm1", masks);
        TRY("cvtpi2ps %%mm3, %%xmm1", masks);
        TRY("cvtpd2pi %3, %%mm2", masks);
        TRY("movsd %3, %%xmm1", masks);
        TRY("movq %2, %%mm1", masks);
        TRY("paddb %%mm1, %%mm2", masks);
        TRY("movq2dq %%mm1, %%xmm1", masks);
        TRY("emms", masks);
        TRY("fwait", masks);
        TRY("fnstsw %%ax", masks);
        TRY("fnclex", masks);
        TRY("fld1", masks);
    }
    return 0;
}
