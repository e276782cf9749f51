// Which vector accesses need alignment, and what a program is told of one that is not aligned.
#pragma GCC target("sse4.2,aes,pclmul")
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <ucontext.h>

static sigjmp_buf back;
static siginfo_t told;
static long trap, error, stopped_at, started_at;
static uint8_t memory[1024] __attribute__((aligned(64)));

static void on_signal(int signal, siginfo_t* info, void* frame) {
    greg_t* registers = ((ucontext_t*)frame)->uc_mcontext.gregs;
    told = *info;
    trap = registers[REG_TRAPNO];
    error = registers[REG_ERR];
    stopped_at = registers[REG_RIP];
    siglongjmp(back, 1);
}

#define TRY(instruction)                                                                                         \
    do {                                                                                                         \
        for (int offset = 0; offset <= 16; offset += 4) {                                                        \
            if (!sigsetjmp(back, 1)) {                                                                           \
                asm volatile("lea 1f(%%rip), %%rax; mov %%rax, %1; 1: " instruction                              \
                             :                                                                                   \
                             : "r"(memory + offset), "m"(started_at)                                             \
                             : "xmm0", "mm0", "rax", "rcx", "rdx", "memory");                                    \
                printf("%s +%d: done\n", instruction, offset);                                                   \
            } else {                                                                                             \
                printf("%s +%d: signal %d code %d address %p trap %ld error %ld at +%ld\n", instruction, offset, \
                       told.si_signo, told.si_code, told.si_addr, trap, error, stopped_at - started_at);         \
            }                                                                                                    \
        }                                                                                                        \
        asm volatile("emms");                                                                                    \
    } while (0)
#define TRY_EACH_PACKED(name)    \
    TRY(name "ps (%0), %%xmm0"); \
    TRY(name "pd (%0), %%xmm0"); \
    TRY(name "ss (%0), %%xmm0"); \
    TRY(name "sd (%0), %%xmm0")

int main(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, 0);
    TRY("movaps (%0), %%xmm0");
    TRY("movaps %%xmm0, (%0)");
    TRY("movapd (%0), %%xmm0");
    TRY("movdqa %%xmm0, (%0)");
    TRY("movups (%0), %%xmm0");
    TRY("movdqu %%xmm0, (%0)");
    TRY("lddqu (%0), %%xmm0");
    TRY("movntps %%xmm0, (%0)");
    TRY("movntdq %%xmm0, (%0)");
    TRY("movntdqa (%0), %%xmm0");
    TRY("movsldup (%0), %%xmm0");
    TRY("movddup (%0), %%xmm0");
    TRY("movlps (%0), %%xmm0");
    TRY_EACH_PACKED("add");
    TRY_EACH_PACKED("min");
    TRY_EACH_PACKED("sqrt");
    TRY_EACH_PACKED("cmpeq");
    TRY("haddps (%0), %%xmm0");
    TRY("addsubpd (%0), %%xmm0");
    TRY("rcpps (%0), %%xmm0");
    TRY("rsqrtss (%0), %%xmm0");
    TRY("andnpd (%0), %%xmm0");
    TRY("shufps $1, (%0), %%xmm0");
    TRY("unpcklps (%0), %%xmm0");
    TRY("comisd (%0), %%xmm0");
    TRY("cvtps2pd (%0), %%xmm0");
    TRY("cvtpd2ps (%0), %%xmm0");
    TRY("cvtdq2ps (%0), %%xmm0");
    TRY("cvtdq2pd (%0), %%xmm0");
    TRY("cvttps2dq (%0), %%xmm0");
    TRY("cvtpd2pi (%0), %%mm0");
    TRY("cvtps2pi (%0), %%mm0");
    TRY("pxor (%0), %%xmm0");
    TRY("paddd (%0), %%mm0");
    TRY("pshufd $1, (%0), %%xmm0");
    TRY("pshuflw $1, (%0), %%xmm0");
    TRY("psadbw (%0), %%xmm0");
    TRY("psllw (%0), %%xmm0");
    TRY("pinsrw $1, (%0), %%xmm0");
    TRY("pshufb (%0), %%xmm0");
    TRY("pblendvb (%0), %%xmm0");
    TRY("ptest (%0), %%xmm0");
    TRY("pmovsxbw (%0), %%xmm0");
    TRY("pmulld (%0), %%xmm0");
    TRY("phminposuw (%0), %%xmm0");
    TRY("roundps $0, (%0), %%xmm0");
    TRY("roundsd $0, (%0), %%xmm0");
    TRY("palignr $1, (%0), %%xmm0");
    TRY("dppd $1, (%0), %%xmm0");
    TRY("mpsadbw $1, (%0), %%xmm0");
    TRY("insertps $1, (%0), %%xmm0");
    TRY("pclmulqdq $1, (%0), %%xmm0");
    TRY("pcmpistri $0, (%0), %%xmm0");
    TRY("pcmpestrm $0, (%0), %%xmm0");
    TRY("aesenc (%0), %%xmm0");
    TRY("aeskeygenassist $1, (%0), %%xmm0");
    return 0;
}
