/* ptrace(2): every kind of stop, what a tracer hears at each and may do there. No numbers of processes are printed. */
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include "show.h"

#ifndef PTRACE_EVENTMSG_SYSCALL_ENTRY
#define PTRACE_EVENTMSG_SYSCALL_ENTRY 1
#endif
#define NUMBER(request) ((void*)(uintptr_t)(request))

static long word = 42;
static const long constant = 17;
static volatile sig_atomic_t handled, traps;

static void on_signal(int number) { handled = number; }
static void on_child(int number, siginfo_t* info, void* context) { traps = info->si_code * 100 + info->si_status; }

/* The next of the tracee's stops, in words. */
static int next(pid_t child, const char* what) {
    int status = 0;
    pid_t found = waitpid(child, &status, __WALL);
    if (found != child)
        printf("%s: %s\n", what, found < 0 ? strerror(errno) : "another");
    else if (WIFEXITED(status))
        printf("%s: exited %d\n", what, WEXITSTATUS(status));
    else if (WIFSIGNALED(status))
        printf("%s: killed %d\n", what, WTERMSIG(status));
    else
        printf("%s: stopped %#x\n", what, status >> 8);
    fflush(stdout);
    return status;
}

static void information(pid_t child) {
    siginfo_t info = {0};
    if (ptrace(PTRACE_GETSIGINFO, child, 0, &info) < 0)
        printf("  no siginfo: %s\n", strerror(errno));
    else
        printf("  siginfo %d %#x own %d\n", info.si_signo, info.si_code, info.si_pid == child);
}

static long message(pid_t child) {
    unsigned long found = 0;
    return ptrace(PTRACE_GETEVENTMSG, child, 0, &found) < 0 ? -1 : (long)found;
}

static void state(pid_t child) {
    char path[64], line[128];
    snprintf(path, sizeof path, "/proc/%d/status", child);
    FILE* file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        if (!strncmp(line, "State", 5)) fputs(line, stdout);
        if (!strncmp(line, "TracerPid", 9)) printf("TracerPid is own: %d\n", atoi(line + 10) == getpid());
    }
    if (file) fclose(file);
}

static pid_t traced(void (*body)(void)) {
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        body();
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    return child;
}

static void returns(void) { _exit(word == 99 && constant == 18 ? 7 : 8); }

static void memory(void) {
    puts("-- memory");
    pid_t child = traced(returns);
    state(child);
    information(child);
    SHOW(ptrace(PTRACE_PEEKDATA, child, &word, 0));
    SHOW(ptrace(PTRACE_POKEDATA, child, &word, NUMBER(98)));
    SHOW(ptrace(PTRACE_POKETEXT, child, &constant, NUMBER(18)));
    SHOW(ptrace(PTRACE_PEEKTEXT, child, &constant, 0));
    SHOW(ptrace(PTRACE_PEEKDATA, child, NUMBER(8), 0));
    SHOW(ptrace(PTRACE_POKEDATA, child, NUMBER(8), 0));
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", child);
    int mem = open(path, O_RDWR);
    long seen = 99;
    SHOW(pwrite(mem, &seen, sizeof seen, (off_t)(uintptr_t)&word));
    seen = 19;
    SHOW(pwrite(mem, &seen, sizeof seen, (off_t)(uintptr_t)&constant));
    seen = 18;
    SHOW(pwrite(mem, &seen, sizeof seen, (off_t)(uintptr_t)&constant));
    SHOW(pread(mem, &seen, sizeof seen, (off_t)(uintptr_t)&word));
    SHOW(pread(mem, &seen, sizeof seen, 8));
    close(mem);
    struct iovec here = {&seen, 8}, there = {(void*)&constant, 8};
    SHOW(process_vm_readv(child, &here, 1, &there, 1, 0));
    SHOW(seen);
    SHOW(process_vm_writev(child, &here, 1, &there, 1, 0));
    SHOW(ptrace(PTRACE_CONT, child, 0, NUMBER(1000)));
    SHOW(ptrace(PTRACE_CONT, child, 0, 0));
    next(child, "end");
    SHOW(ptrace(PTRACE_CONT, child, 0, 0));
    SHOW(constant);
}

static void calls(void) {
    syscall(SYS_getppid);
    errno = 0;
    long result = syscall(SYS_getpid);
    _exit(result == -1 && errno == ENOSYS ? 3 : result == 55 ? 4 : 5);
}

static struct __ptrace_syscall_info call_information(pid_t child) {
    struct __ptrace_syscall_info info;
    memset(&info, 0, sizeof info);
    long size = ptrace(PTRACE_GET_SYSCALL_INFO, child, NUMBER(sizeof info), &info);
    printf("  syscall info %ld bytes, op %d, message %ld", size, info.op, message(child));
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
        printf(" %s\n", info.entry.nr == SYS_getppid      ? "getppid"
                        : info.entry.nr == SYS_getpid     ? "getpid"
                        : info.entry.nr == SYS_exit_group ? "exit_group"
                                                          : "?");
    else if (info.op == PTRACE_SYSCALL_INFO_EXIT)
        printf(" error %d\n", info.exit.is_error);
    else
        puts("");
    return info;
}

static void system_calls(void) {
    puts("-- system calls");
    pid_t child = traced(calls);
    SHOW(ptrace(PTRACE_SETOPTIONS, child, 0, NUMBER(PTRACE_O_TRACESYSGOOD)));
    SHOW(ptrace(PTRACE_SETOPTIONS, child, 0, NUMBER(1 << 30)));
    call_information(child);
    for (int stop = 0; stop < 8; stop++) {
        ptrace(PTRACE_SYSCALL, child, 0, 0);
        int status = next(child, "call");
        if (WIFEXITED(status)) break;
        information(child);
        call_information(child);
        if (stop == 3) { /* getpid: another result */
            unsigned long registers[64];
            struct iovec all = {registers, sizeof registers};
            SHOW(ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, &all));
#ifdef __x86_64__
            registers[10] = 55;
#else
            registers[0] = 55;
#endif
            SHOW(ptrace(PTRACE_SETREGSET, child, NT_PRSTATUS, &all));
        }
    }
    child = traced(calls); /* without TRACESYSGOOD */
    ptrace(PTRACE_SYSCALL, child, 0, 0);
    next(child, "plain");
    information(child);
    ptrace(PTRACE_SYSCALL, child, 0, 0);
    next(child, "plain");
    SHOW(ptrace(PTRACE_KILL, child, 0, 0));
    next(child, "end");
}

static void raises(void) {
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    signal(SIGWINCH, SIG_IGN);
    raise(SIGUSR1);
    if (handled != SIGUSR2) _exit(1);
    raise(SIGUSR1);
    if (handled != SIGUSR2) _exit(2);
    raise(SIGWINCH);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    raise(SIGUSR1);
    kill(getpid(), SIGUSR1);
    raise(SIGCHLD);
    raise(SIGTERM);
}

static void signals(void) {
    puts("-- signals");
    pid_t child = traced(raises);
    ptrace(PTRACE_CONT, child, 0, 0);
    next(child, "first");
    information(child);
    ptrace(PTRACE_CONT, child, 0, NUMBER(SIGUSR2)); /* another one */
    next(child, "second");
    ptrace(PTRACE_CONT, child, 0, 0); /* none */
    next(child, "ignored");
    ptrace(PTRACE_CONT, child, 0, NUMBER(SIGWINCH));
    next(child, "default is to ignore");
    struct __ptrace_peeksiginfo_args pending = {0, 0, 4};
    siginfo_t infos[4] = {0};
    SHOW(ptrace(PTRACE_PEEKSIGINFO, child, &pending, infos));
    printf("  %d %d\n", infos[0].si_signo, infos[0].si_code);
    pending.flags = PTRACE_PEEKSIGINFO_SHARED;
    SHOW(ptrace(PTRACE_PEEKSIGINFO, child, &pending, infos));
    pending.flags = 2;
    SHOW(ptrace(PTRACE_PEEKSIGINFO, child, &pending, infos));
    uint64_t mask = 0;
    SHOW(ptrace(PTRACE_GETSIGMASK, child, NUMBER(8), &mask));
    SHOW((long)mask);
    SHOW(ptrace(PTRACE_GETSIGMASK, child, NUMBER(4), &mask));
    mask = 1 << (SIGUSR2 - 1);
    SHOW(ptrace(PTRACE_SETSIGMASK, child, NUMBER(8), &mask));
    ptrace(PTRACE_CONT, child, 0, 0);
    next(child, "no longer blocked");
    siginfo_t info;
    ptrace(PTRACE_GETSIGINFO, child, 0, &info);
    info.si_signo = SIGUSR2;
    SHOW(ptrace(PTRACE_SETSIGINFO, child, 0, &info));
    ptrace(PTRACE_CONT, child, 0, NUMBER(SIGUSR2)); /* blocked: stays pending */
    next(child, "deadly");
    ptrace(PTRACE_CONT, child, 0, NUMBER(SIGTERM));
    next(child, "end");
}

static void* thread(void* argument) { return argument; }

static void makes(void) {
    int status;
    pid_t child = fork();
    if (child == 0) _exit(11);
    waitpid(child, &status, 0);
    child = vfork();
    if (child == 0) _exit(12);
    waitpid(child, &status, 0);
    pthread_t other;
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    char* const arguments[] = {"program", "again", NULL};
    execv("/proc/self/exe", arguments);
    _exit(1);
}

static void events(void) {
    puts("-- events");
    pid_t child = traced(makes);
    SHOW(ptrace(PTRACE_SETOPTIONS, child, 0,
                NUMBER(PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC |
                       PTRACE_O_TRACEEXIT | PTRACE_O_TRACEVFORKDONE | PTRACE_O_EXITKILL)));
    pid_t made = 0;
    for (;;) {
        ptrace(PTRACE_CONT, child, 0, 0);
        int status = next(child, "parent");
        if (WIFEXITED(status)) break;
        int event = status >> 16, signal = 0;
        if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE) {
            information(child);
            made = message(child);
            next(made, "child");
            information(made);
            ptrace(PTRACE_CONT, made, 0, 0);
            next(made, "child");
            printf("  message %#lx\n", message(made));
            ptrace(PTRACE_CONT, made, 0, 0);
            next(made, "child");
        } else if (event == PTRACE_EVENT_VFORK_DONE) {
            SHOW(message(child) == made);
        } else if (event == PTRACE_EVENT_EXEC) {
            SHOW(message(child) == child);
        } else if (event == PTRACE_EVENT_EXIT) {
            printf("  message %#lx\n", message(child));
        } else {
            signal = WSTOPSIG(status);
        }
        if (signal == SIGCHLD) information(child);
    }
}

static void executes(void) {
    char* const arguments[] = {"program", "again", NULL};
    execv("/proc/self/exe", arguments);
}

static void execution(void) {
    puts("-- execve without an option");
    pid_t child = traced(executes);
    ptrace(PTRACE_CONT, child, 0, 0);
    next(child, "execve");
    information(child);
    ptrace(PTRACE_CONT, child, 0, 0);
    next(child, "end");
}

static void waits(void) {
    for (;;) pause();
}

static void attaching(void) {
    puts("-- attaching");
    SHOW(ptrace(PTRACE_ATTACH, getpid(), 0, 0));
    SHOW(ptrace(PTRACE_ATTACH, 0x3fffff, 0, 0));
    SHOW(ptrace(PTRACE_CONT, getppid(), 0, 0));
    pid_t child = fork();
    if (child == 0) waits();
    SHOW(ptrace(PTRACE_ATTACH, child, 0, 0));
    SHOW(ptrace(PTRACE_ATTACH, child, 0, 0));
    SHOW(ptrace(PTRACE_INTERRUPT, child, 0, 0));
    next(child, "attached");
    information(child);
    SHOW(ptrace(PTRACE_LISTEN, child, 0, 0));
    SHOW(ptrace(PTRACE_INTERRUPT, child, 0, 0));
    SHOW(ptrace(PTRACE_CONT, child, 0, NUMBER(SIGSTOP))); /* a group-stop */
    next(child, "group");
    information(child);
    SHOW(ptrace(PTRACE_DETACH, child, 0, 0));
    usleep(100000); /* to where it is stopped again */
    state(child);
    SHOW(ptrace(PTRACE_SEIZE, child, NUMBER(1), 0));
    SHOW(ptrace(PTRACE_SEIZE, child, 0, NUMBER(PTRACE_O_TRACESYSGOOD)));
    next(child, "seized");
    information(child);
    SHOW(ptrace(PTRACE_LISTEN, child, 0, 0));
    SHOW(ptrace(PTRACE_CONT, child, 0, 0));
    SHOW(kill(child, SIGCONT));
    next(child, "goes on");
    information(child);
    SHOW(ptrace(PTRACE_CONT, child, 0, 0));
    next(child, "SIGCONT");
    SHOW(ptrace(PTRACE_CONT, child, 0, 0));
    SHOW(ptrace(PTRACE_INTERRUPT, child, 0, 0));
    next(child, "interrupted");
    SHOW(ptrace(PTRACE_DETACH, child, 0, NUMBER(SIGTERM))); /* not from such a stop */
    usleep(1000);
    SHOW(kill(child, 0));
    SHOW(kill(child, SIGKILL));
    next(child, "end");
}

static void steps(void) {
    puts("-- steps");
    pid_t child = traced(returns);
    long count = 0;
    for (; count < 1000; count++) {
        ptrace(PTRACE_SINGLESTEP, child, 0, 0);
        int status;
        waitpid(child, &status, 0);
        if (WIFEXITED(status)) break;
        if (count == 0) {
            printf("step: stopped %#x\n", status >> 8);
            siginfo_t info;
            ptrace(PTRACE_GETSIGINFO, child, 0, &info);
            SHOW(info.si_signo);
        }
    }
    SHOW(count > 4 && count < 1000);
}

static void telling(void) {
    puts("-- SIGCHLD, waitid");
    struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGCHLD, &action, NULL);
    pid_t child = traced(waits);
    SHOW(traps);
    kill(child, SIGUSR1);
    ptrace(PTRACE_CONT, child, 0, 0);
    siginfo_t info = {0};
    SHOW(waitid(P_PID, child, &info, WSTOPPED | WNOWAIT));
    SHOW(info.si_code * 1000 + info.si_status);
    SHOW(waitid(P_PID, child, &info, WSTOPPED | WNOHANG));
    SHOW(info.si_pid == child);
    info.si_pid = 0;
    SHOW(waitid(P_PID, child, &info, WSTOPPED | WNOHANG));
    SHOW(info.si_pid);
    SHOW(traps);
    ptrace(PTRACE_CONT, child, 0, NUMBER(SIGKILL));
    next(child, "end");
    signal(SIGCHLD, SIG_DFL);
}

static void tracers_end(void) {
    puts("-- the tracer's end");
    for (int kills = 0; kills < 2; kills++) {
        pid_t child = fork();
        if (child == 0) waits();
        pid_t tracer = fork();
        if (tracer == 0) {
            int status;
            ptrace(PTRACE_SEIZE, child, 0, NUMBER(kills ? PTRACE_O_EXITKILL : 0));
            ptrace(PTRACE_INTERRUPT, child, 0, 0);
            waitpid(child, &status, __WALL);
            _exit(status >> 16);
        }
        next(tracer, "tracer");
        if (!kills) kill(child, SIGTERM);
        next(child, "child");
    }
    pid_t child = fork(); /* ended, and the tracer hears first */
    if (child == 0) waits();
    pid_t tracer = fork();
    if (tracer == 0) {
        int status;
        ptrace(PTRACE_SEIZE, child, 0, 0);
        kill(child, SIGKILL);
        waitpid(child, &status, __WALL);
        _exit(WTERMSIG(status));
    }
    next(tracer, "tracer");
    next(child, "child");
}

int main(int count, char** arguments) {
    if (count > 1) return 21;
    memory();
    system_calls();
    signals();
    events();
    execution();
    attaching();
    steps();
    telling();
    tracers_end();
    SHOW(prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0) == 0 || errno == EINVAL);
    return 0;
}
