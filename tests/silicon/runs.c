// runs TIMES PROGRAM [ARGUMENT...] [-- PROGRAM [ARGUMENT...]]...: each program in turn, TIMES times over. For each run a
// line: the program's number, nanoseconds of its CPU time, and those of one dependent addition just before.
//
// Only what a program does itself shall count: from its entry point, behind the dynamic linker, to its exit, and without
// page faults. So mlockall is called in its name when it stands at the entry: its pages are there then, and what it asks
// for later is there as soon as it asks. Addresses are not randomized. If allowed, nothing else of this machine runs on
// the processor meanwhile.
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
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

static void stopped(pid_t child) {
    int status;
    require(waitpid(child, &status, 0) == child && WIFSTOPPED(status), "the program did not stop where it should");
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

static void go_to_entry(pid_t child) {
    enum { INT3 = 0xcc };
    unsigned long entry = entry_of(child);
    long code = ptrace(PTRACE_PEEKTEXT, child, entry, 0);
    ptrace(PTRACE_POKETEXT, child, entry, (code & ~0xffL) | INT3);
    ptrace(PTRACE_CONT, child, 0, 0);
    stopped(child);
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

static void start(char** program) {
    int nowhere = open("/dev/null", O_RDWR);
    for (int file = 0; file < 3; file++) dup2(nowhere, file);
    personality(ADDR_NO_RANDOMIZE);
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    execv(program[0], program);
    _exit(127);
}

// Of its first thread, from entry to exit.
static long processor_time(char** program) {
    pid_t child = fork();
    clockid_t clock;
    int status;
    if (child == 0) start(program);
    stopped(child);
    ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL);
    go_to_entry(child);
    lock_pages(child);
    require(clock_getcpuclockid(child, &clock) == 0, "clock_getcpuclockid");
    long begin = nanoseconds(clock);
    ptrace(PTRACE_CONT, child, 0, 0);
    stopped(child);
    long time = nanoseconds(clock) - begin;
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
