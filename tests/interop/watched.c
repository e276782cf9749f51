/* What the kernel's debug registers count: perf events of type breakpoint on a variable and on a function, and how many
 * single steps of ptrace a child takes. */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMES = 10, INSTRUCTIONS = 3 };

static volatile uint64_t watched;
static volatile uint64_t beside[4];

__attribute__((noinline)) static void called(void) { __asm__ volatile("" ::: "memory"); }

static int breakpoint(uint32_t type, uint64_t address, uint64_t length) {
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.type = PERF_TYPE_BREAKPOINT;
    attr.size = sizeof attr;
    attr.bp_type = type;
    attr.bp_addr = address;
    attr.bp_len = length;
    attr.exclude_kernel = attr.exclude_hv = 1;
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static void say(const char* what, int event) {
    uint64_t count = 0;
    if (read(event, &count, sizeof count) != sizeof count) {
        printf("%s: no count\n", what);
        return;
    }
    printf("%s: %llu\n", what, (unsigned long long)count);
    close(event);
}

static void steps(void) {
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        __asm__ volatile("mov x8, #172\n svc #0\n"  /* getpid, so that there is something to stop at */
                         "brk #0\n" ::: "x0", "x8", "memory");
        __asm__ volatile("nop\n nop\n nop\n brk #1\n" ::: "memory");
        _exit(0);
    }
    int status, count = 0;
    uint64_t pc[34];
    struct {
        void* base;
        size_t length;
    } vector = {pc, sizeof pc};
    waitpid(child, &status, 0);
    ptrace(PTRACE_GETREGSET, child, 1, &vector);
    pc[32] += 4; /* behind the BRK */
    ptrace(PTRACE_SETREGSET, child, 1, &vector);
    const uint64_t from = pc[32];
    do {
        ptrace(PTRACE_SINGLESTEP, child, 0, 0);
        waitpid(child, &status, 0);
        ptrace(PTRACE_GETREGSET, child, 1, &vector);
        count++;
    } while (WIFSTOPPED(status) && pc[32] != from + 4 * INSTRUCTIONS && count < 100);
    printf("steps: %d\n", count);
    ptrace(PTRACE_KILL, child, 0, 0);
}

int main(void) {
    int event = breakpoint(HW_BREAKPOINT_W, (uint64_t)&watched, HW_BREAKPOINT_LEN_8);
    for (int i = 0; i < TIMES; i++) watched = (uint64_t)i;
    for (int i = 0; i < TIMES; i++) beside[i & 3] = watched;
    say("stores", event);
    event = breakpoint(HW_BREAKPOINT_R, (uint64_t)&watched, HW_BREAKPOINT_LEN_8);
    for (int i = 0; i < TIMES; i++) (void)watched;
    for (int i = 0; i < TIMES; i++) watched = 0;
    say("loads", event);
    event = breakpoint(HW_BREAKPOINT_X, (uint64_t)&called, 4);
    for (int i = 0; i < TIMES; i++) called();
    say("calls", event);
    steps();
    return 0;
}
