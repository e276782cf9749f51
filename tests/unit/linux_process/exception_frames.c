/* What a handler is told of each exception, what its FPU begins with and what is restored behind it.
   Prints lines that test_exception_frames.py compares with Linux's. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile int number, code;
static char *volatile address;
static char *volatile program_counter;
#ifdef __x86_64__
static volatile long trap, error, fault;
#endif

static void on_exception(int signal, siginfo_t *info, void *context) {
    ucontext_t *user = context;
    number = signal;
    code = info->si_code;
    address = info->si_addr;
#ifdef __x86_64__
    program_counter = (char *)user->uc_mcontext.gregs[REG_RIP];
    trap = user->uc_mcontext.gregs[REG_TRAPNO];
    error = user->uc_mcontext.gregs[REG_ERR];
    fault = user->uc_mcontext.gregs[REG_CR2];
#else
    program_counter = (char *)user->uc_mcontext.pc;
#endif
    siglongjmp(back, 1);
}

static void show(const char *name, char *data) {
    const char *where = address == NULL ? "none" : address == program_counter ? "pc" : address == data ? "data" : "else";
    printf("%s: signal %d code %d address %s", name, number, code, where);
#ifdef __x86_64__
    printf(" trap %ld error %ld", trap, error);
    if (trap == 14) printf(" cr2 %s", (char *)fault == data ? "data" : "else");
#endif
    puts("");
}

#define TRY(name, data, statement) \
    do {                           \
        if (sigsetjmp(back, 1) == 0) { statement; puts(name ": nothing"); } \
        else show(name, (char *)(data)); \
    } while (0)

static void install(int signal, void (*handler)(int, siginfo_t *, void *)) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(signal, &action, NULL);
}

#ifdef __x86_64__
static volatile unsigned short seen_control, seen_status;
static volatile unsigned seen_mxcsr;
static unsigned char shown[80];
static volatile unsigned shown_control, shown_status, shown_tags;

static void on_user(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    ucontext_t *user = context;
    unsigned short control, status;
    unsigned mxcsr;
    __asm__ volatile("fnstcw %0" : "=m"(control));
    __asm__ volatile("fnstsw %0" : "=m"(status));
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    seen_control = control, seen_status = status, seen_mxcsr = mxcsr;
    unsigned char *area = (unsigned char *)user->uc_mcontext.fpregs;
    shown_control = area[0] | area[1] << 8;
    shown_status = area[2] | area[3] << 8;
    shown_tags = area[4];
    for (int i = 0; i < 8; i++) memcpy(shown + 10 * i, area + 32 + 16 * i, 10);
    __asm__ volatile("fldz; fldz; fldz; fldz; fldz" ::: "memory"); /* must not be seen by who was interrupted */
}

static void floating_point(void) {
    install(SIGUSR1, on_user);
    long double one = 1.5L, two = -2.25L, out_one = 0, out_two = 0;
    unsigned short control = 0x27F, after_control, after_status; /* double precision */
    __asm__ volatile("fninit; fldcw %0; fldt %1; fldt %2" ::"m"(control), "m"(one), "m"(two));
    kill(getpid(), SIGUSR1);
    __asm__ volatile("fnstsw %0" : "=m"(after_status));
    __asm__ volatile("fnstcw %0" : "=m"(after_control));
    __asm__ volatile("fstpt %0" : "=m"(out_two));
    __asm__ volatile("fstpt %0" : "=m"(out_one));
    printf("handler: control %x status %x mxcsr %x\n", seen_control, seen_status, seen_mxcsr);
    printf("frame: control %x status %x tags %x\n", shown_control, shown_status, shown_tags);
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 10; k++) printf("%02x", shown[10 * i + k]);
        puts("");
    }
    printf("after: control %x status %x %Lf %Lf\n", after_control, after_status, out_one, out_two);
}
#endif

int main(void) {
    int exceptions[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    for (int i = 0; i < 5; i++) install(exceptions[i], on_exception);
    setvbuf(stdout, NULL, _IOLBF, 0);
    TRY("load", 0x1230, (void)*(volatile char *)0x1230);
    TRY("store", 0x1230, *(volatile char *)0x1230 = 1);
    TRY("jump", 0x1230, ((void (*)(void))0x1230)());
    TRY("store to code", &main, *(volatile char *)&main = 1);
#ifdef __x86_64__
    TRY("not canonical", 0, (void)*(volatile char *)0x8000000000000000);
    TRY("int3", 0, __asm__ volatile("int3"));
    TRY("ud2", 0, __asm__ volatile("ud2"));
    TRY("hlt", 0, __asm__ volatile("hlt"));
    TRY("divide", 0, __asm__ volatile("xor %%edx, %%edx; xor %%ecx, %%ecx; mov $1, %%eax; div %%ecx" ::: "eax", "ecx", "edx"));
    floating_point();
#else
    TRY("brk", 0, __asm__ volatile("brk #0"));
    TRY("udf", 0, __asm__ volatile(".inst 0"));
#endif
    return 0;
}
