/* Counts a child's instructions while it is single-stepped, continued and has breakpoints written into its code. */
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t count(int event) {
    uint64_t value = 0;
    return read(event, &value, sizeof value) == sizeof value ? value : 0;
}

/* In the child: a call, a fault, a loop. */
static void body(void) {
    static volatile char fresh[1 << 16];
    fresh[1 << 15] = 1;
    syscall(SYS_getppid);
    for (volatile int i = 0; i < 20; i++) {
    }
}

/* Instructions of a child from its SIGSTOP to its end, stepped or not; how many steps that were. */
static uint64_t run(int stepped, uint64_t* steps) {
    pid_t child = fork();
    int status;
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        body();
        _exit(0);
    }
    waitpid(child, &status, 0);
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_HARDWARE;
    attr.config = PERF_COUNT_HW_INSTRUCTIONS;
    attr.exclude_kernel = attr.exclude_hv = 1;
    int event = syscall(SYS_perf_event_open, &attr, child, -1, -1, 0);
    *steps = 0;
    for (;;) {
        ptrace(stepped ? PTRACE_SINGLESTEP : PTRACE_CONT, child, 0, 0);
        waitpid(child, &status, 0);
        if (WIFEXITED(status)) break;
        ++*steps;
        if (stepped && count(event) != *steps) {
            printf("after %lu steps %lu instructions\n", (unsigned long)*steps, (unsigned long)count(event));
            break;
        }
    }
    return count(event);
}

int main(void) {
    uint64_t steps, stops;
    uint64_t stepped = run(1, &steps), whole = run(0, &stops);
    printf("%d %d %d\n", stepped == steps + 1, stepped == whole, steps > 100); /* the last one ends it */
    return 0;
}
