/* What a task gives up: calls, by seccomp(2), and on x86 the time-stamp counter. Prints what happens then. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __x86_64__
#define OURS AUDIT_ARCH_X86_64
#else
#define OURS AUDIT_ARCH_AARCH64
#endif
#define SIZE(array) (sizeof(array) / sizeof(*(array)))
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, value)
#define IF(value, skipped) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skipped)

static void show(const char *what, long result) {
    printf("%s: %ld %s\n", what, result, result < 0 ? strerrorname_np(errno) : "");
    fflush(stdout);
}

static long install(struct sock_filter *filter, unsigned count, unsigned flags) {
    struct sock_fprog program = {count, filter};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* getppid's answer is `action`; every other call is made. */
static long on_getppid(unsigned action, unsigned flags) {
    struct sock_filter filter[] = {LOAD(arch), IF(OURS, 3), LOAD(nr), IF(SYS_getppid, 1), ANSWER(action),
                                   ANSWER(SECCOMP_RET_ALLOW)};
    return install(filter, SIZE(filter), flags);
}

static void status_field(const char *name) {
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':') fputs(line, stdout);
    fclose(file);
}

static void in_child(const char *what, void (*act)(void)) {
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        act();
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, &status, 0);
    printf("%s: status %#x\n", what, status & ~0x80); /* whether there is a core file is not the question */
}

static void malformed(void) {
    struct sock_filter odd[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2), ANSWER(SECCOMP_RET_ALLOW)};
    struct sock_filter behind[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64), ANSWER(SECCOMP_RET_ALLOW)};
    struct sock_filter half[] = {BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0), ANSWER(SECCOMP_RET_ALLOW)};
    struct sock_filter endless[] = {LOAD(nr)};
    struct sock_filter far[] = {IF(0, 2), ANSWER(0), ANSWER(0)};
    struct sock_filter by_zero[] = {BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), ANSWER(0)};
    struct sock_filter rest[] = {BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, 3), ANSWER(0)};
    struct sock_filter shift[] = {BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 32), ANSWER(0)};
    struct sock_filter unwritten[] = {IF(0, 1), BPF_STMT(BPF_ST, 3), BPF_STMT(BPF_LD | BPF_MEM, 3), ANSWER(0)};
    show("no instructions", install(odd, 0, 0));
    show("an odd offset", install(odd, SIZE(odd), 0));
    show("behind the data", install(behind, SIZE(behind), 0));
    show("half a word", install(half, SIZE(half), 0));
    show("no end", install(endless, SIZE(endless), 0));
    show("a far jump", install(far, SIZE(far), 0));
    show("by zero", install(by_zero, SIZE(by_zero), 0));
    show("a remainder", install(rest, SIZE(rest), 0));
    show("a long shift", install(shift, SIZE(shift), 0));
    show("unwritten memory", install(unwritten, SIZE(unwritten), 0));
    show("unknown flags", install(odd, SIZE(odd), 1 << 20));
    show("no program", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL));
    show("unknown operation", syscall(SYS_seccomp, 77, 0, NULL));
    show("prctl's mode", prctl(PR_SET_SECCOMP, 3, NULL, 0, 0));
    unsigned action = SECCOMP_RET_TRACE, none = 0x12340000;
    show("TRACE is known", syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action));
    show("another is not", syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &none));
}

static void errors(void) {
    show("filter", on_getppid(SECCOMP_RET_ERRNO | ENOTTY, 0));
    show("getppid", syscall(SYS_getppid));
    show("mode", prctl(PR_GET_SECCOMP));
    status_field("Seccomp");
    /* The stronger answer counts, whichever is the later one. */
    show("weaker", on_getppid(SECCOMP_RET_LOG, 0));
    show("getppid", syscall(SYS_getppid));
    show("largest", on_getppid(SECCOMP_RET_ERRNO | 0xfff, 0));
    long result = syscall(SYS_getppid);
    printf("getppid: %ld %d\n", result, errno);
    status_field("Seccomp_filters");
    show("strict", prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
    pid_t child = fork();
    int status;
    if (!child) _exit(syscall(SYS_getppid) == -1 && errno == 0xfff ? 5 : 6);
    waitpid(child, &status, 0);
    printf("a child has them: %d\n", WEXITSTATUS(status));
}

static void on_sigsys(int signal, siginfo_t *info, void *context) {
    ucontext_t *interrupted = context;
#ifdef __x86_64__
    long number = interrupted->uc_mcontext.gregs[REG_RAX], pc = interrupted->uc_mcontext.gregs[REG_RIP];
#else
    long number = interrupted->uc_mcontext.regs[8], pc = interrupted->uc_mcontext.pc;
#endif
    printf("SIGSYS: code %d errno %d syscall %d arch %d at %d, number %d\n", info->si_code, info->si_errno,
           info->si_syscall == SYS_getppid, info->si_arch == OURS, (long)info->si_call_addr == pc,
           number == SYS_getppid);
}

static void trapped(void) {
    struct sigaction action = {.sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
    show("filter", on_getppid(SECCOMP_RET_TRAP | 77, 0));
    syscall(SYS_getppid);
    puts("and on");
}

static void arguments(void) { /* A sum of arithmetic: (fd * 3 + 1) ^ 0x10, where fd is 5 or not; the program's memory. */
    struct sock_filter filter[] = {
        LOAD(nr), IF(SYS_close, 10), LOAD(args[0]), BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, 3),
        BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 1), BPF_STMT(BPF_ALU | BPF_XOR | BPF_K, 0x10), BPF_STMT(BPF_ST, 2),
        BPF_STMT(BPF_LDX | BPF_MEM, 2), BPF_STMT(BPF_MISC | BPF_TXA, 0), IF(0, 1), ANSWER(SECCOMP_RET_ERRNO | EPERM),
        ANSWER(SECCOMP_RET_ERRNO | EXDEV), ANSWER(SECCOMP_RET_ALLOW)};
    show("filter", install(filter, SIZE(filter), 0));
    show("close 5", close(5));
    show("close 6", close(6));
    show("close -1", close(-1));
}

static void killed(void) {
    on_getppid(SECCOMP_RET_KILL_PROCESS, 0);
    syscall(SYS_getppid);
}

static void *calls(void *nothing) {
    on_getppid(SECCOMP_RET_KILL_THREAD, 0);
    syscall(SYS_getppid);
    return nothing;
}

static void killed_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, calls, NULL);
    pthread_join(thread, NULL);
    puts("its process goes on");
}

static void strict(void) {
    show("strict", syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL));
    syscall(SYS_write, 1, "it writes\n", 10);
    syscall(SYS_getppid);
}

static void unknown(void) { /* An answer that is none kills. */
    on_getppid(0x12340000, 0);
    syscall(SYS_getppid);
}

static pthread_barrier_t barrier;
static void *another(void *nothing) {
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    show("getppid of another thread", syscall(SYS_getppid));
    return nothing;
}

static void synchronised(void) {
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, another, NULL);
    pthread_barrier_wait(&barrier);
    show("all threads", on_getppid(SECCOMP_RET_ERRNO | ENODEV, SECCOMP_FILTER_FLAG_TSYNC));
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
}

static void asked(void) { show("nobody traces", (on_getppid(SECCOMP_RET_TRACE | 9, 0), syscall(SYS_getppid))); }

static void traced(void) {
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        on_getppid(SECCOMP_RET_TRACE | 9, 0);
        long first = syscall(SYS_getppid), second = syscall(SYS_getppid);
        _exit(first == getpid() && second == -1 && errno == ENOSYS ? 4 : 5);
    }
    waitpid(child, &status, 0);
    ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESECCOMP);
    for (int stop = 0; stop < 2; stop++) {
        unsigned long message;
        struct __ptrace_syscall_info info;
        ptrace(PTRACE_CONT, child, 0, 0);
        waitpid(child, &status, 0);
        ptrace(PTRACE_GETEVENTMSG, child, 0, &message);
        long length = ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info);
        printf("stop %#x, %ld; info %ld: %d %d %d\n", status >> 8, message, length, info.op, info.entry.nr == SYS_getppid,
               info.seccomp.ret_data);
        int number = stop ? -1 : SYS_getpid; /* it makes another call, and none */
#ifdef __x86_64__
        ptrace(PTRACE_POKEUSER, child, 15 * 8, (long)number);
#else
        struct { void *base; size_t size; } vector = {&number, sizeof number};
        ptrace(PTRACE_SETREGSET, child, 0x404, &vector);
#ifdef __aarch64__
        if (stop) { /* what the result is, is left to the tracer there */
            unsigned long registers[34];
            vector.base = registers, vector.size = sizeof registers;
            ptrace(PTRACE_GETREGSET, child, 1, &vector);
            registers[0] = -ENOSYS;
            ptrace(PTRACE_SETREGSET, child, 1, &vector);
        }
#endif
#endif
    }
    ptrace(PTRACE_CONT, child, 0, 0);
    waitpid(child, &status, 0);
    printf("traced: %d\n", WEXITSTATUS(status));
}

#ifdef __x86_64__
static sig_atomic_t faults;
static void on_fault(int signal, siginfo_t *info, void *context) {
    faults++;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2; /* RDTSC */
}

static void time_stamps(void) {
    int mode = 0;
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    show("no mode", prctl(PR_SET_TSC, 3));
    show("SIGSEGV", prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
    prctl(PR_GET_TSC, &mode);
    __builtin_ia32_rdtsc();
    printf("mode %d, %d faults\n", mode, (int)faults);
    show("enabled", prctl(PR_SET_TSC, PR_TSC_ENABLE));
    __builtin_ia32_rdtsc();
    printf("%d faults\n", (int)faults);
}
#endif

int main(void) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    show("mode", prctl(PR_GET_SECCOMP));
    in_child("malformed", malformed);
    in_child("errors", errors);
    in_child("trapped", trapped);
    in_child("arguments", arguments);
    in_child("killed", killed);
    in_child("a killed thread", killed_thread);
    in_child("strict", strict);
    in_child("unknown", unknown);
    in_child("synchronised", synchronised);
    in_child("asked", asked);
    traced();
#ifdef __x86_64__
    in_child("time stamps", time_stamps);
#endif
    return 0;
}
