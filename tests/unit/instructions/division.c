// DIV and IDIV of dividends and divisors at their edges: quotient and remainder, or SIGFPE with nothing written.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>

static sigjmp_buf back;
static siginfo_t told;

static void on_signal(int signal, siginfo_t* info, void* frame) {
    told = *info;
    siglongjmp(back, 1);
}

#define TRY(instruction, divisor)                                                                                      \
    do {                                                                                                               \
        uint64_t rax = low, rdx = high;                                                                                \
        if (!sigsetjmp(back, 1)) {                                                                                     \
            asm volatile(instruction : "+a"(rax), "+d"(rdx) : "c"(divisor) : "cc");                                    \
            printf("%s %lx:%lx by %lx: %lx, %lx\n", instruction, high, low, (uint64_t)divisor, rax, rdx);              \
        } else {                                                                                                       \
            printf("%s %lx:%lx by %lx: signal %d code %d\n", instruction, high, low, (uint64_t)divisor, told.si_signo, \
                   told.si_code);                                                                                      \
        }                                                                                                              \
    } while (0)

static const uint64_t EDGES[] = {0,
                                 1,
                                 ~0ul,
                                 0x7f,
                                 0x80,
                                 0x7fff,
                                 0x8000,
                                 0x7fffffff,
                                 0x80000000,
                                 0xffffffff,
                                 0x7fffffffffffffff,
                                 0x8000000000000000,
                                 0xffffffff80000000,
                                 0x123456789};
enum { NUMBER = sizeof EDGES / sizeof *EDGES };

static void divide(uint64_t high, uint64_t low, uint64_t divisor) {
    TRY("idivb %%cl", divisor);
    TRY("idivw %%cx", divisor);
    TRY("idivl %%ecx", divisor);
    TRY("idivq %%rcx", divisor);
    TRY("divb %%cl", divisor);
    TRY("divw %%cx", divisor);
    TRY("divl %%ecx", divisor);
    TRY("divq %%rcx", divisor);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGFPE, &action, 0);
    for (int high = 0; high < NUMBER; high++)
        for (int low = 0; low < NUMBER; low += 1)
            for (int divisor = 0; divisor < NUMBER; divisor++) divide(EDGES[high], EDGES[low], EDGES[divisor]);
    return 0;
}
