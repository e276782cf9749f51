// Hardware breakpoints that a tracer sets by DR0 to DR3 and DR7 (x86-64): prints what each order answers, and each stop.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile uint64_t watched[2];

__attribute__((noinline)) static void called(void) { watched[1]++; }

static long poke(pid_t child, int number, uint64_t value) {
    long answer = ptrace(PTRACE_POKEUSER, child, offsetof(struct user, u_debugreg) + 8 * number, value);
    return answer < 0 ? -errno : answer;
}

static uint64_t peek(pid_t child, int number) {
    errno = 0;
    return ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, u_debugreg) + 8 * number, 0);
}

static uint64_t control(int number, unsigned type, unsigned length) {
    return (uint64_t)(type | length << 2) << (16 + 4 * number) | 1ul << 2 * number;
}

static void work(void) {
    for (int i = 0; i < 3; i++) {
        watched[0] = i;         // 8 bytes
        (void)watched[0];       // a read
        *(volatile uint16_t *)((char *)watched + 2) = 7;
        called();
    }
}

// Lets the child go on until it ends, and prints each stop: of which breakpoints, and whether it was at `called`.
static void follow(pid_t child, const char *what) {
    int status;
    for (int stops = 0; stops < 40; stops++) {
        ptrace(PTRACE_CONT, child, 0, 0);
        if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) break;
        siginfo_t info;
        struct user_regs_struct registers;
        memset(&info, 0, sizeof info);
        ptrace(PTRACE_GETSIGINFO, child, 0, &info);
        ptrace(PTRACE_GETREGS, child, 0, &registers);
        printf("%s: signal %d code %d, at its PC %d, at the function %d, DR6 %lx\n", what, WSTOPSIG(status), info.si_code,
               (uint64_t)info.si_addr == registers.rip, registers.rip == (uint64_t)called, peek(child, 6) & 0xf);
        poke(child, 6, 0);
    }
    printf("%s: ended, status %x\n", what, status);
}

static pid_t start(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        work();
        _exit(0);
    }
    waitpid(child, NULL, 0);
    return child;
}

int main(void) {
    static const struct { const char *what; uint64_t place; unsigned type, length; } EACH[] = {
        {"writes of 8", (uint64_t)watched, 1, 2},      {"writes of 2", (uint64_t)watched + 2, 1, 1},
        {"accesses of 8", (uint64_t)watched, 3, 2},    {"execution", (uint64_t)called, 0, 0},
        {"accesses of 1", (uint64_t)watched + 8, 3, 0}, {"nothing", (uint64_t)watched + 5, 1, 0},
    };
    for (unsigned i = 0; i < sizeof EACH / sizeof *EACH; i++) {
        pid_t child = start();
        int number = i % 4;
        printf("%s: %ld", EACH[i].what, poke(child, number, EACH[i].place));
        printf(" %ld, %d", poke(child, 7, control(number, EACH[i].type, EACH[i].length)), peek(child, number) == EACH[i].place);
        printf(" %lx\n", peek(child, 7));
        follow(child, EACH[i].what);
    }
    pid_t child = start();
    printf("wrong: %ld", poke(child, 0, (uint64_t)called));
    printf(" ports %ld", poke(child, 7, control(0, 2, 0)));
    printf(" long code %ld", poke(child, 7, control(0, 0, 3)));
    printf(" unaligned %ld %ld", poke(child, 0, (uint64_t)watched + 1), poke(child, 7, control(0, 1, 3)));
    printf(" DR4 %ld DR5 %ld, DR7 %lx\n", poke(child, 4, 1), poke(child, 5, 1), peek(child, 7));
    poke(child, 0, (uint64_t)watched);
    poke(child, 7, control(0, 1, 2));
    poke(child, 7, 0);
    follow(child, "off again");

    // They are the thread's: the next tracer finds them, and nobody has to trace it for a hit.
    child = start();
    poke(child, 1, (uint64_t)called);
    poke(child, 7, control(1, 0, 0));
    poke(child, 6, 0xffff0ff1);
    ptrace(PTRACE_DETACH, child, 0, SIGSTOP);
    ptrace(PTRACE_SEIZE, child, 0, 0);
    ptrace(PTRACE_INTERRUPT, child, 0, 0);
    waitpid(child, NULL, 0);
    printf("another tracer: %d, DR7 %lx, DR6 %lx\n", peek(child, 1) == (uint64_t)called, peek(child, 7), peek(child, 6) & 0xf);
    ptrace(PTRACE_DETACH, child, 0, 0);
    kill(child, SIGCONT);
    int status;
    waitpid(child, &status, 0);
    printf("without a tracer: status %x\n", status & 0x7f);
    return 0;
}
