// Which selectors can be loaded, RET and ENTER, and what faults at the borders of pages and of the address space.
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { PAGE = 4096 };
static sigjmp_buf again;
static uint8_t* pages;  // two that can be written, and one that cannot

static void on_signal(int signal, siginfo_t* info, void* context) {
    ucontext_t* frame = context;
    intptr_t at = (uint8_t*)info->si_addr - pages;
    printf(" signal %d code %d trap %lld", signal, info->si_code, (long long)frame->uc_mcontext.gregs[REG_TRAPNO]);
    if (at >= 0 && at < 3 * PAGE)
        printf(" at page %+ld", at - 2 * PAGE);
    else if (!info->si_addr || (intptr_t)info->si_addr < 0)
        printf(" at %p", info->si_addr);
    siglongjmp(again, 1);
}

#define ATTEMPT(name, action)       \
    do {                            \
        printf("%s:", name);        \
        if (!sigsetjmp(again, 1)) { \
            action;                 \
            printf(" done");        \
        }                           \
        printf("\n");               \
    } while (0)

#define LOAD(segment)                                                                      \
    for (unsigned i = 0; i < sizeof selectors / sizeof *selectors; i++) {                  \
        unsigned read = 0xffff;                                                            \
        char name[32];                                                                     \
        snprintf(name, sizeof name, "%s %#x", #segment, selectors[i]);                     \
        ATTEMPT(name, __asm__ volatile("mov %1, %%" #segment "; mov %%" #segment           \
                                       ", %0" : "=r"(read) : "r"((uint32_t)selectors[i])); \
                printf(" %#x", read));                                                     \
        __asm__ volatile("mov %0, %%ds; mov %0, %%es; mov %0, %%gs" : : "r"(0));           \
    }

static uint64_t gs_base(void) {
    uint64_t base = 1;
    syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
    return base;
}

static void segments(void) {
    static const uint16_t selectors[] = {0,    1,    2,    3,    4,    8,    0x10, 0x18, 0x20, 0x23, 0x28,  0x2b,
                                         0x2f, 0x30, 0x33, 0x37, 0x40, 0x43, 0x63, 0x78, 0x7b, 0x83, 0x100, 0xffff};
    LOAD(ds)
    LOAD(es)
    LOAD(gs)
    LOAD(ss)
    uint64_t selector = 0;
    syscall(SYS_arch_prctl, ARCH_SET_GS, 0x1234);
    __asm__ volatile("push $0x2b; pop %%gs; push %%gs; pop %0" : "=r"(selector));
    printf("pop gs: %#lx, base %#lx\n", selector, gs_base());
    syscall(SYS_arch_prctl, ARCH_SET_GS, 0x1234);
    __asm__ volatile("mov %%gs, %0" : "=r"(selector));
    printf("arch_prctl: %#lx, base %#lx\n", selector, gs_base());
    struct {
        uint32_t offset;
        uint16_t selector;
    } __attribute__((packed)) far = {0x1234, 0x2b};
    uint32_t offset;
    __asm__ volatile("lss %1, %0" : "=r"(offset) : "m"(far));
    printf("lss: %#x\n", offset);
    far.selector = 0;
    ATTEMPT("lss of null", __asm__ volatile("lss %1, %0" : "=r"(offset) : "m"(far)));
}

static void returns(void) {
    static uint8_t stack[1 << 17];
    uint64_t before = (uint64_t)stack + 64, after;
    __asm__ volatile(
        "mov %%rsp, %%r12; mov %1, %%rsp; lea 1f(%%rip), %%rax; mov %%rax, (%%rsp); ret $0x9008\n"
        "1: mov %%rsp, %0; mov %%r12, %%rsp"
        : "=&r"(after)
        : "r"(before)
        : "rax", "r12", "memory");
    printf("ret: %#lx\n", after - before);
    __asm__ volatile(
        "mov %%rsp, %%r12; mov %1, %%rsp; lea 1f(%%rip), %%rax; mov %%rax, (%%rsp); ret $0xfff8\n"
        "1: mov %%rsp, %0; mov %%r12, %%rsp"
        : "=&r"(after)
        : "r"(before)
        : "rax", "r12", "memory");
    printf("ret: %#lx\n", after - before);
}

#define ON_STACK(pointer, code)                                                                \
    __asm__ volatile("mov %%rsp, %%r12; mov %%rbp, %%r13; mov %0, %%rsp; mov %0, %%rbp; " code \
                     "; mov %%r13, %%rbp; mov %%r12, %%rsp"                                    \
                     :                                                                         \
                     : "r"(pointer)                                                            \
                     : "rax", "r12", "r13", "memory")

static void stacks(void) {
    const uint64_t nowhere = 0x8000000000000000;
    ATTEMPT("push", ON_STACK(nowhere, "push %%rax"));
    ATTEMPT("pop", ON_STACK(nowhere, "pop %%rax"));
    ATTEMPT("call", ON_STACK(nowhere, "call *%%rax"));
    ATTEMPT("ret", ON_STACK(nowhere, "ret"));
    ATTEMPT("leave", ON_STACK(nowhere, "leave"));
    ATTEMPT("enter", ON_STACK(nowhere, "enter $8, $1"));
    ATTEMPT("[rbp]", ON_STACK(nowhere, "mov 8(%%rbp), %%rax"));
    ATTEMPT("ds:[rbp]", ON_STACK(nowhere, ".byte 0x3e; mov 8(%%rbp), %%rax"));
    ATTEMPT("gs:[rbp]", ON_STACK(nowhere, "mov %%gs:8(%%rbp), %%rax"));
    ATTEMPT("[rax]", ON_STACK(nowhere, "mov %%rsp, %%rax; mov (%%rax), %%rax"));
    ATTEMPT("enter a page that cannot be written", ON_STACK(pages + 2 * PAGE + 64, "enter $32, $0"));
    ATTEMPT("enter into one", ON_STACK(pages + 3 * PAGE + 64, "enter $64, $0"));
}

static void show_border(void) {
    printf("  ");
    for (int i = 2 * PAGE - 12; i < 2 * PAGE; i++) printf(" %02x", pages[i]);
    printf("\n");
}

static void borders(void) {
    uint64_t vector[2] = {0x1111111111111111, 0x2222222222222222};
    uint8_t* border = pages + 2 * PAGE;
    for (int back = 16; back > 0; back -= 5) {
        memset(border - 16, 0, 16);
        ATTEMPT("movdqu to memory", __asm__ volatile("movdqu %0, %%xmm7; movdqu %%xmm7, (%1)" : : "m"(vector),
                                                     "r"(border - back) : "xmm7", "memory"));
        show_border();
        ATTEMPT("maskmovdqu",
                __asm__ volatile("movdqu %0, %%xmm7; pcmpeqb %%xmm6, %%xmm6; maskmovdqu %%xmm6, %%xmm7" : : "m"(vector),
                                 "D"(border - back) : "xmm6", "xmm7", "memory"));
        show_border();
    }
    mprotect(border, PAGE, PROT_NONE);
    ATTEMPT("punpcklbw", __asm__ volatile("punpcklbw (%0), %%mm0; emms" : : "r"(border - 4)));
    __asm__ volatile("movdqu %0, %%xmm6" : : "m"(vector) : "xmm6");
    ATTEMPT("movdqu from memory", __asm__ volatile("movdqu (%0), %%xmm6" : : "r"(border - 8) : "xmm6"));
    ATTEMPT("bt", __asm__ volatile("bt %1, (%0)" : : "r"(border - 64), "r"(64L * 8 + 100)));
    ATTEMPT("xlatb", __asm__ volatile("xlatb" : : "b"(border - 8), "a"(20L)));
    ATTEMPT("movq", __asm__ volatile("mov (%0), %%rax" : : "r"(border - 3) : "rax"));
}

int main(void) {
    static uint8_t signal_stack[1 << 16];
    stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    sigaltstack(&stack, NULL);
    for (unsigned i = 0; i < sizeof SIGNALS / sizeof *SIGNALS; i++) sigaction(SIGNALS[i], &action, NULL);
    setvbuf(stdout, NULL, _IONBF, 0);
    pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + 2 * PAGE, PAGE, PROT_READ);
    segments();
    returns();
    stacks();
    borders();
    return 0;
}
