// MXCSR as STMXCSR, FXSAVE, LDMXCSR and FXRSTOR show and set it; what must be aligned besides vectors.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

enum { AREA = 512, MXCSR_AT = 24 };

static sigjmp_buf back;
static siginfo_t told;
static long trap;
static uint8_t memory[2 * AREA + 64] __attribute__((aligned(64)));

static void on_signal(int signal, siginfo_t* info, void* frame) {
    told = *info;
    trap = ((ucontext_t*)frame)->uc_mcontext.gregs[REG_TRAPNO];
    siglongjmp(back, 1);
}

#define TRY(instruction, at)                                                                                   \
    do {                                                                                                       \
        if (!sigsetjmp(back, 1)) {                                                                             \
            asm volatile(instruction : : "r"(at) : "memory", "rax", "rbx", "rcx", "rdx", "rdi", "xmm0", "cc"); \
            printf("%s +%d: done, MXCSR %#x\n", instruction, (int)((uintptr_t)(at) & 63), control());          \
        } else {                                                                                               \
            printf("%s +%d: signal %d code %d address %p trap %ld, MXCSR %#x\n", instruction,                  \
                   (int)((uintptr_t)(at) & 63), told.si_signo, told.si_code, told.si_addr, trap, control());   \
        }                                                                                                      \
    } while (0)

static uint32_t control(void) {
    uint32_t value;
    asm volatile("stmxcsr %0" : "=m"(value));
    return value;
}

static void restore_with(uint32_t value) {
    uint8_t* area = memory + AREA;
    memcpy(area, memory, AREA);
    memcpy(area + MXCSR_AT, &value, sizeof value);
    TRY("fxrstor (%0)", area);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, 0);
    for (int offset = 0; offset <= 16; offset += 4) {
        TRY("fxsave (%0)", memory + offset);
        TRY("fxsave64 (%0)", memory + offset);
        TRY("lock cmpxchg16b (%0)", memory + offset);
        TRY("cmpxchg16b (%0)", memory + offset);
        TRY("mov %0, %%rdi; pxor %%xmm0, %%xmm0; maskmovdqu %%xmm0, %%xmm0", memory + offset);
    }
    TRY("fxsave (%0)", memory);
    static const uint32_t CONTROLS[] = {0x1f80, 0x1fbf, 0xffff, 0, 0x10000, 0x10001f80, 0x80001f80, 0x1f80};
    for (unsigned i = 0; i < sizeof CONTROLS / sizeof *CONTROLS; i++) {
        restore_with(CONTROLS[i]);
        TRY("ldmxcsr (%0)", &CONTROLS[i]);
        uint32_t saved;
        asm volatile("fxsave (%0)" : : "r"(memory) : "memory");
        memcpy(&saved, memory + MXCSR_AT, sizeof saved);
        printf("saved %#x\n", saved);
    }
    memcpy(memory + AREA + 4, memory, AREA);
    TRY("fxrstor (%0)", memory + AREA + 4);
    return 0;
}
