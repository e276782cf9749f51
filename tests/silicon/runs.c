// runs TIMES PROGRAM [ARGUMENT...] [-- PROGRAM [ARGUMENT...]]...: each program in turn, TIMES times over. For each run a
// line: the program's number, nanoseconds of its CPU time, and those of one dependent addition just before.
//
// Only what a program does itself shall count: from its entry point, behind the dynamic linker, to its exit, and without
// the making of pages. So mlockall is called in its name when it stands at the entry: its pages are there then, and what
// it asks for later is there when it has asked, in a system call that is not counted. Addresses are not randomized. If
// allowed, nothing else of this machine runs on the processor meanwhile.
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PROGRAMS = 16, ADDITIONS = 100, REPETITIONS = 100 };

static void require(int holds, const char* what) {
    if (holds) return;
    perror(what);
    exit(1);
}

static long nanoseconds(clockid_t clock) {
    struct timespec time;
    require(clock_gettime(clock, &time) == 0, "clock_gettime");
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static double nanoseconds_per_addition(void) {
    unsigned long sum = 0, addend = 1;
    long begin = nanoseconds(CLOCK_MONOTONIC);
    for (int i = 0; i < REPETITIONS; i++)
        __asm__ volatile(".rept 100\n\tadd %1, %0\n\t.endr" : "+r"(sum) : "r"(addend));
    return (double)(nanoseconds(CLOCK_MONOTONIC) - begin) / (ADDITIONS * REPETITIONS);
}

static void take_a_processor(void) {
    struct sched_param first = {.sched_priority = 1};
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    sched_setaffinity(0, sizeof here, &here);
    sched_setscheduler(0, SCHED_FIFO, &first);
}

// The event that it stopped for, 0: a signal.
static int stopped(pid_t child) {
    int status;
    require(waitpid(child, &status, 0) == child && WIFSTOPPED(status), "the program did not stop where it should");
    return status >> 16;
}

// Runs on to a signal or an event, but not those of asking for memory.
static long run_on(pid_t child, clockid_t clock) {
    long begin = nanoseconds(clock), asking = 0;
    for (ptrace(PTRACE_CONT, child, 0, 0); stopped(child) == PTRACE_EVENT_SECCOMP; ptrace(PTRACE_CONT, child, 0, 0)) {
        long asked = nanoseconds(clock);
        ptrace(PTRACE_SYSCALL, child, 0, 0);
        stopped(child);
        asking += nanoseconds(clock) - asked;
    }
    return nanoseconds(clock) - begin - asking;
}

static struct user_regs_struct registers_of(pid_t child) {
    struct user_regs_struct registers;
    require(ptrace(PTRACE_GETREGS, child, 0, &registers) == 0, "PTRACE_GETREGS");
    return registers;
}

static unsigned long entry_of(pid_t child) {
    unsigned long pair[2] = {AT_NULL, 0};
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/auxv", child);
    FILE* file = fopen(path, "r");
    require(file != NULL, path);
    while (fread(pair, sizeof pair, 1, file) == 1 && pair[0] != AT_ENTRY) {}
    fclose(file);
    require(pair[0] == AT_ENTRY, "AT_ENTRY");
    return pair[1];
}

static void go_to_entry(pid_t child, clockid_t clock) {
    enum { INT3 = 0xcc };
    unsigned long entry = entry_of(child);
    long code = ptrace(PTRACE_PEEKTEXT, child, entry, 0);
    ptrace(PTRACE_POKETEXT, child, entry, (code & ~0xffL) | INT3);
    run_on(child, clock);
    struct user_regs_struct registers = registers_of(child);
    require(registers.rip == entry + 1, "the program's entry");
    registers.rip = entry;
    ptrace(PTRACE_POKETEXT, child, entry, code);
    ptrace(PTRACE_SETREGS, child, 0, &registers);
}

static void lock_pages(pid_t child) {
    static const long SYSCALL = 0x050f;
    struct user_regs_struct registers = registers_of(child), call = registers;
    long code = ptrace(PTRACE_PEEKTEXT, child, registers.rip, 0);
    call.rax = SYS_mlockall;
    call.rdi = MCL_CURRENT | MCL_FUTURE;
    call.orig_rax = ~0ULL;
    ptrace(PTRACE_POKETEXT, child, registers.rip, (code & ~0xffffL) | SYSCALL);
    ptrace(PTRACE_SETREGS, child, 0, &call);
    ptrace(PTRACE_SINGLESTEP, child, 0, 0);
    stopped(child);
    require(registers_of(child).rax == 0, "mlockall");
    ptrace(PTRACE_POKETEXT, child, registers.rip, code);
    ptrace(PTRACE_SETREGS, child, 0, &registers);
}

// System calls that ask for memory are stopped at.
static void trace_memory_calls(void) {
    static const int CALLS[] = {SYS_brk, SYS_mmap, SYS_mremap, SYS_munmap};
    enum { COUNT = sizeof CALLS / sizeof *CALLS };
    struct sock_filter filter[COUNT + 3];
    filter[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < COUNT; i++)
        filter[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALLS[i], COUNT - i, 0);
    filter[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    struct sock_fprog program = {COUNT + 3, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void start(char** program) {
    int nowhere = open("/dev/null", O_RDWR);
    for (int file = 0; file < 3; file++) dup2(nowhere, file);
    personality(ADDR_NO_RANDOMIZE);
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    trace_memory_calls();
    execv(program[0], program);
    _exit(127);
}

// Of its first thread, from entry to exit.
static long processor_time(char** program) {
    pid_t child = fork();
    clockid_t clock;
    int status;
    if (child == 0) start(program);
    require(clock_getcpuclockid(child, &clock) == 0, "clock_getcpuclockid");
    stopped(child);
    ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT | PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL);
    run_on(child, clock);
    go_to_entry(child, clock);
    lock_pages(child);
    long time = run_on(child, clock);
    ptrace(PTRACE_DETACH, child, 0, 0);
    require(waitpid(child, &status, 0) == child && status == 0, program[0]);
    return time;
}

int main(int count, char** arguments) {
    char** programs[MOST_PROGRAMS];
    int known = 0;
    if (count < 3) return 2;
    programs[known++] = arguments + 2;
    for (int i = 2; i < count; i++) {
        if (strcmp(arguments[i], "--") || known == MOST_PROGRAMS) continue;
        arguments[i] = NULL;
        programs[known++] = arguments + i + 1;
    }
    take_a_processor();
    for (int round = 0; round < atoi(arguments[1]); round++) {
        for (int i = 0; i < known; i++) {
            double addition = nanoseconds_per_addition();
            printf("%d %ld %.6f\n", i, processor_time(programs[i]), addition);
        }
    }
    return 0;
}
