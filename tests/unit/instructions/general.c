// Instructions whose edges the engine does not know: what they do, read and change, and that they fault.
#pragma GCC target("sse4.2,bmi,bmi2,lzcnt,popcnt")
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, FLAGS = 0x8d5 };

static sigjmp_buf back;
static siginfo_t told;
static uint8_t* end;  // of a page; there is none behind it

static void on_signal(int signal, siginfo_t* info, void* frame) {
    told = *info;
    siglongjmp(back, 1);
}

typedef union {
    uint32_t doublewords[4];
    uint64_t quadwords[2];
} __attribute__((aligned(16))) vector;

// RAX, RBX, RCX, RDX and XMM1 go in and come out; RSI is `at`.
#define TRY(instruction, flags_defined)                                                                           \
    do {                                                                                                          \
        uint64_t registers[4] = {0xffffffff80000001, 0x123456789abcdef0, 0xfedcba9887654321, 0xff00ff00f0f0f0f0}; \
        uint64_t flags = 0;                                                                                       \
        vector value = {{0x3f800000, 0xbf000000, 0x40490fdb, 0x12345678}};                                        \
        if (!sigsetjmp(back, 1)) {                                                                                \
            asm volatile(                                                                                         \
                "movaps %2, %%xmm1; mov (%3), %%rax; mov 8(%3), %%rbx; mov 16(%3), %%rcx; mov 24(%3), %%rdx;"     \
                "xor %%r8d, %%r8d; " instruction                                                                  \
                "; pushfq; popq %1; mov %%rax, (%3); mov %%rbx, 8(%3);"                                           \
                "mov %%rcx, 16(%3); mov %%rdx, 24(%3); movaps %%xmm1, %2"                                         \
                : "+m"(registers), "=m"(flags), "+m"(value)                                                       \
                : "r"(registers), "S"(at)                                                                         \
                : "rax", "rbx", "rcx", "rdx", "r8", "xmm1", "mm0", "cc", "memory");                               \
            printf("%s: %lx %lx %lx %lx, %lx %lx, flags %#lx\n", instruction, registers[0], registers[1],         \
                   registers[2], registers[3], value.quadwords[0], value.quadwords[1],                            \
                   flags & ((flags_defined) | 0x3200));                                                           \
        } else {                                                                                                  \
            printf("%s: signal %d code %d at end + %ld\n", instruction, told.si_signo, told.si_code,              \
                   told.si_signo == SIGSEGV ? (long)((uint8_t*)told.si_addr - end) : 0);                          \
        }                                                                                                         \
    } while (0)

static void integers(uint8_t* at) {
    TRY("pdep %%ebx, %%ecx, %%edx", FLAGS);
    TRY("pdep %%edx, %%ecx, %%ebx", FLAGS);
    TRY("pext %%edx, %%ecx, %%ebx", FLAGS);
    TRY("pext %%rdx, %%rcx, %%rbx", FLAGS);
    TRY("cmpxchg %%ebx, %%ecx", FLAGS);
    TRY("mov %%eax, %%ecx; cmpxchg %%ebx, %%ecx", FLAGS);
    TRY("cmpxchg %%rbx, %%rcx", FLAGS);
    TRY("movl $0x80000001, (%%rsi); lock cmpxchg %%ebx, (%%rsi); mov (%%rsi), %%rcx", FLAGS);
    TRY("movl $0x80000002, (%%rsi); lock cmpxchg %%ebx, (%%rsi); mov (%%rsi), %%rcx", FLAGS);
    TRY("movl $5, (%%rsi); lock negl (%%rsi); mov (%%rsi), %%rcx", FLAGS);
    TRY("movq $0, (%%rsi); lock negq (%%rsi); mov (%%rsi), %%rcx", FLAGS);
    TRY(".byte 0xf6, 0xc8, 0x81", FLAGS & ~0x10);                 // test al, by its other encoding
    TRY(".byte 0x48, 0xf7, 0xcb, 0, 0, 0, 0x80", FLAGS & ~0x10);  // test rbx
    TRY("movb $0x55, %%ah; sahf; .byte 0x48, 0x9f", FLAGS);       // lahf with REX.W
    TRY("movb $0xd5, %%ah; .byte 0x48, 0x9e", FLAGS);             // sahf
    TRY("mov %%cs, %%eax; mov %%ss, %%bx; mov %%cs, %%rcx; mov %%ss, (%%rsi); mov (%%rsi), %%dx", 0);
    TRY("push $0x3ad5; popfq", FLAGS);
    TRY(".byte 0x66, 0xf3, 0x48, 0x0f, 0xb8, 0xd9", FLAGS);  // popcnt with 66 and REX.W
}

static void vectors(uint8_t* at) {
    TRY("phsubw %%xmm1, %%xmm1", 0);
    TRY("phsubd %%xmm1, %%xmm1", 0);
    TRY("phaddw %%xmm1, %%xmm1", 0);
    TRY("phaddd %%xmm1, %%xmm1", 0);
    TRY("phaddsw %%xmm1, %%xmm1", 0);
    TRY("phsubsw %%xmm1, %%xmm1", 0);
    TRY("movq %%rbx, %%mm0; phsubw %%mm0, %%mm0; movq %%mm0, %%rcx; emms", 0);
    TRY(".byte 0x0f, 0xc2, 0xc9, 0xf8", 0);        // cmpps, whose predicate is of three bits
    TRY(".byte 0xf2, 0x0f, 0xc2, 0xc9, 0x1c", 0);  // cmpsd
    TRY(".byte 0x66, 0x0f, 0xc3, 0x06", 0);        // movnti with 66
    TRY(".byte 0x66, 0x0f, 0x12, 0xc9", 0);        // movhlps
    TRY(".byte 0xf3, 0x0f, 0xae, 0x1e", 0);        // stmxcsr
}

// Up to the end of a page: what is behind is not read.
static void ends_of_pages(uint8_t* at) {
    TRY("cvtps2pd -8(%%rsi), %%xmm1", 0);
    TRY("cvtdq2pd -8(%%rsi), %%xmm1", 0);
    TRY("cvtps2pi -8(%%rsi), %%mm0; movq %%mm0, %%rax; emms", 0);
    TRY("cvttps2pi -8(%%rsi), %%mm0; movq %%mm0, %%rax; emms", 0);
    TRY("roundss $0, -4(%%rsi), %%xmm1", 0);
    TRY("roundsd $3, -8(%%rsi), %%xmm1", 0);
    TRY("cvtps2pd -4(%%rsi), %%xmm1", 0);
    TRY("roundsd $3, (%%rsi), %%xmm1", 0);
    TRY("lock cmpxchg %%ebx, (%%rsi)", FLAGS);
    TRY("pdep (%%rsi), %%rax, %%rbx", FLAGS);
    TRY("clflush (%%rsi)", FLAGS);
    TRY("clflush -1(%%rsi)", FLAGS);
    TRY("mov %%cs, (%%rsi)", FLAGS);
    TRY("mov $65, %%eax; bt %%eax, -8(%%rsi)", 1);
    TRY("mov $-9, %%rax; btsq %%rax, 4096(%%rsi); mov 1(%%rsi), %%al", 1);
    TRY("mov %%rsi, %%rbx; mov $3, %%eax; xlatb", FLAGS);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, 0);
    sigaction(SIGILL, &action, 0);
    uint8_t* pages = mmap(0, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    end = pages + PAGE;
    munmap(end, PAGE);
    memset(pages, 0x41, PAGE);
    integers(pages);
    vectors(pages);
    ends_of_pages(end);
    return 0;
}
