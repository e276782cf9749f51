/* Restartable sequences: registration, the CPU's number, and that a signal or another thread makes one begin again. */
#include "show.h"
#include <signal.h>
#include <sched.h>
#include <stdint.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <pthread.h>

struct area { uint32_t cpu_start, cpu; uint64_t section; uint32_t flags, node, mm_cid, end; } __attribute__((aligned(32)));
struct section { uint32_t version, flags; uint64_t start, length, abort; } __attribute__((aligned(32)));

static __thread struct area area __attribute__((aligned(32)));
static volatile int signals;
static void on_signal(int signal) { signals++; }

#ifdef __x86_64__
#define SYS_RSEQ 334
#define SIGNATURE 0x53053053
/* Spins in a sequence until something drives it out; how far it had come is lost, and it says so. */
static int spin(struct section *described) {
    int out = 0;
    __asm__ volatile(
        "lea 1f(%%rip), %%rax; mov %%rax, 8(%1); lea 3f(%%rip), %%rax; mov %%rax, 24(%1); lea 2f(%%rip), %%rax;"
        "lea 1f(%%rip), %%rcx; sub %%rcx, %%rax; mov %%rax, 16(%1); mov %1, 8(%2);"
        "1: jmp 1b; nop; 2: jmp 4f; .long 0x53053053; 3: mov $1, %0; 4:"
        : "+r"(out) : "r"(described), "r"(&area) : "rax", "rcx", "memory");
    return out;
}
#else
#define SYS_RSEQ 293
#define SIGNATURE 0xd428bc00
static int spin(struct section *described) {
    int out = 0;
    __asm__ volatile(
        "adr x9, 1f; str x9, [%1, 8]; adr x10, 3f; str x10, [%1, 24]; adr x10, 2f; sub x10, x10, x9; str x10, [%1, 16];"
        "str %1, [%2, 8]; 1: b 1b; nop; 2: b 4f; .inst 0xd428bc00; 3: mov %w0, #1; 4:"
        : "+r"(out) : "r"(described), "r"(&area) : "x9", "x10", "memory");
    return out;
}
#endif

static long rseq(void *at, unsigned length, int flags, unsigned signature) { return syscall(SYS_RSEQ, at, length, flags, signature); }

static void *other(void *unused) {
    SHOW(area.cpu);
    SHOW(rseq(&area, 32, 0, SIGNATURE));
    SHOW(area.cpu == sched_getcpu());
    return unused;
}

int main(void) {
    struct section described = {0};
    area.cpu = 77;
    SHOW(rseq(&area, 31, 0, SIGNATURE));
    SHOW(rseq((char *)&area + 4, 32, 0, SIGNATURE));
    SHOW(rseq(&area, 32, 2, SIGNATURE));
    SHOW(rseq(&area, 32, 1, SIGNATURE));
    SHOW(area.cpu);
    SHOW(rseq(&area, 32, 0, SIGNATURE));
    SHOW(area.cpu == sched_getcpu() && area.cpu_start == area.cpu);
    SHOW(area.node);
    SHOW(rseq(&area, 32, 0, SIGNATURE));
    SHOW(rseq(&area, 32, 0, SIGNATURE + 1));
    SHOW(rseq(&area, 64, 0, SIGNATURE));
    SHOW(rseq(&area, 32, 1, SIGNATURE + 1));
    signal(SIGALRM, on_signal);
    struct itimerval soon = {.it_value = {0, 5000}};
    for (int round = 0; round < 3; round++) {
        setitimer(ITIMER_REAL, &soon, NULL);
        SHOW(spin(&described));
        SHOW(area.section);
    }
    while (!signals) spin(&described); /* another process may have driven it out each time, until then */
    SHOW(signals > 0);
    pid_t child = fork();
    if (!child) {
        setitimer(ITIMER_REAL, &soon, NULL);
        SHOW(spin(&described));
        SHOW(rseq(&area, 32, 0, SIGNATURE));
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    SHOW(status);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    SHOW(sched_setaffinity(0, sizeof one, &one));
    SHOW(area.cpu);
    pthread_t thread;
    pthread_create(&thread, NULL, other, NULL);
    pthread_join(thread, NULL);
    child = fork();
    if (!child) for (;;) continue; /* wants the same CPU and drives who spins out of it */
    SHOW(spin(&described));
    kill(child, SIGKILL), waitpid(child, NULL, 0);
    child = fork();
    if (!child) {
        described.version = 9;
        setitimer(ITIMER_REAL, &soon, NULL);
        spin(&described);
        _exit(0);
    }
    waitpid(child, &status, 0);
    SHOW(status & 0x7f);
    area.section = 0;
    SHOW(rseq(&area, 32, 1, SIGNATURE));
    SHOW((int)area.cpu);
    return 0;
}
