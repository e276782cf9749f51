/* What a process may expect of its kernel, as checks that print "ok" or "FAILED" with their name. Run by
   test_process_checks.py on both ISAs; it must pass on a real Linux, too. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static int failures;

static void check(const char *name, int holds) {
    printf("%s %s\n", holds ? "ok" : "FAILED", name);
    failures += !holds;
}

static sigjmp_buf back;
static volatile int caught, caught_code, caught_value, caught_overrun;
static void *volatile caught_address;

static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)context;
    caught = signal;
    caught_code = info->si_code;
    caught_address = info->si_addr;
    siglongjmp(back, 1);
}

static void install(int signal, void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, NULL);
}

static int fault_of(volatile char *address, int write) {
    caught = 0;
    if (sigsetjmp(back, 1) == 0) {
        if (write)
            *address = 1;
        else
            (void)*address;
    }
    return caught;
}

static void faults(void) {
    install(SIGSEGV, on_fault, 0);
    install(SIGBUS, on_fault, 0);
    check("reading an unmapped address is SIGSEGV", fault_of((char *)0x1230, 0) == SIGSEGV);
    check("... SEGV_MAPERR", caught_code == SEGV_MAPERR);
    check("... with the address", caught_address == (void *)0x1230);
    char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check("writing a read-only page is SIGSEGV", fault_of(page + 5, 1) == SIGSEGV);
    check("... SEGV_ACCERR", caught_code == SEGV_ACCERR && caught_address == page + 5);
    check("a read-only page reads as zero", fault_of(page + 5, 0) == 0 && page[5] == 0);
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    check("mprotect makes it writable", fault_of(page + 5, 1) == 0 && page[5] == 1);
    mprotect(page, 4096, PROT_NONE);
    check("PROT_NONE is not readable", fault_of(page + 5, 0) == SIGSEGV && caught_code == SEGV_ACCERR);
    mprotect(page, 4096, PROT_READ);
    check("the byte is still there", page[5] == 1);
    munmap(page, 4096);
    check("after munmap it is gone", fault_of(page, 0) == SIGSEGV && caught_code == SEGV_MAPERR);
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
}

static void files(void) {
    char path[] = "/tmp/process_checks.XXXXXX";
    int fd = mkstemp(path);
    unlink(path);
    char text[5000];
    memset(text, 'a', sizeof text);
    check("a file is written", write(fd, text, sizeof text) == sizeof text);
    char *private = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    char *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    check("both mappings show the file", private[4999] == 'a' && shared[4999] == 'a' && private[5000] == 0);
    private[0] = 'p';
    check("a private write is private", shared[0] == 'a');
    shared[1] = 's';
    check("a shared write is seen by the private mapping's clean page or not", private[1] == 'a' || private[1] == 's');
    char byte = 0;
    pread(fd, &byte, 1, 1);
    check("read sees a shared write", byte == 's');
    pwrite(fd, "w", 1, 4097);
    check("a shared mapping sees write", shared[4097] == 'w');
    check("msync", msync(shared, 8192, MS_SYNC) == 0);
    install(SIGBUS, on_fault, 0);
    char *beyond = mmap(NULL, 16384, PROT_READ, MAP_PRIVATE, fd, 0);
    check("beyond the file's end is SIGBUS", fault_of(beyond + 8192, 0) == SIGBUS);
    signal(SIGBUS, SIG_DFL);
    char *moved = mremap(private, 8192, 65536, MREMAP_MAYMOVE);
    check("mremap keeps a file mapping's bytes", moved != MAP_FAILED && moved[0] == 'p' && moved[4999] == 'a');
    check("mmap of an empty length is EINVAL", mmap(NULL, 0, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED && errno == EINVAL);
    int readable = open("/dev/null", O_RDONLY);
    check("mmap of a closed descriptor is EBADF", mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 99, 0) == MAP_FAILED && errno == EBADF);
    close(readable);
    close(fd);
}

static void memory(void) {
    char *start = (char *)syscall(SYS_brk, 0), *end = start + 100000;
    check("brk grows", (char *)syscall(SYS_brk, end) == end && (memset(start, 7, 100000), end[-1] == 7));
    check("brk shrinks", (char *)syscall(SYS_brk, start) == start);
    check("... and grows zeroed", (char *)syscall(SYS_brk, end) == end && start[8192] == 0);
    check("brk below its start changes nothing", (char *)syscall(SYS_brk, 4096) == end);
    char *area = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(area, 3, 1 << 20);
    char *bigger = mremap(area, 1 << 20, 4 << 20, MREMAP_MAYMOVE);
    check("mremap grows", bigger != MAP_FAILED && bigger[0] == 3 && bigger[(1 << 20) - 1] == 3 && bigger[1 << 20] == 0);
    check("MADV_DONTNEED zeroes", madvise(bigger, 8192, MADV_DONTNEED) == 0 && bigger[0] == 0 && bigger[8192] == 3);
    unsigned char vector[4];
    check("mincore", mincore(bigger + 4096, 4 * 4096, vector) == 0 && vector[0] == 0 && vector[1] == 1);
    check("munmap of the middle", munmap(bigger + 65536, 65536) == 0 && bigger[65535] == 3 && bigger[131072] == 3);
    check("MAP_FIXED_NOREPLACE is EEXIST",
          mmap(bigger, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED && errno == EEXIST);
    check("mprotect of a hole is ENOMEM", mprotect(bigger + 65536, 4096, PROT_READ) == -1 && errno == ENOMEM);
    char *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared[0] = 1;
    check("shared anonymous memory", shared[0] == 1 && shared[4096] == 0);
    check("a huge mapping is ENOMEM", mmap(NULL, 1UL << 45, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == ENOMEM);
    check("uname to unmapped memory is EFAULT", syscall(SYS_uname, (void *)0x10) == -1 && errno == EFAULT);
    for (int i = 0; i < 1000; i++) {
        void *many = mmap(NULL, 8192, i & 1 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (many == MAP_FAILED) check("1000 mappings", 0);
    }
}

static int deep(int depth) {
    volatile char frame[4096];
    frame[0] = (char)depth;
    return depth == 0 ? frame[0] : deep(depth - 1) + frame[0] * 0;
}

static char other_stack[65536];
static void *volatile handler_stack;

static void on_overflow(int signal, siginfo_t *info, void *context) {
    int local;
    (void)info, (void)context;
    handler_stack = &local;
    caught = signal;
    siglongjmp(back, 1);
}

#pragma GCC diagnostic ignored "-Winfinite-recursion"
static int endless(volatile char *above) {
    volatile char frame[1024];
    frame[0] = above[0];
    return endless(frame) + frame[0];
}

static void stack(void) {
    check("the stack grows by megabytes", deep(1500) == 0);
    stack_t alternate = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    check("sigaltstack", sigaltstack(&alternate, NULL) == 0);
    install(SIGSEGV, on_overflow, SA_ONSTACK);
    caught = 0;
    char c = 0;
    if (sigsetjmp(back, 1) == 0) endless(&c);
    check("endless recursion is SIGSEGV on the alternate stack",
          caught == SIGSEGV && (char *)handler_stack > other_stack && (char *)handler_stack < other_stack + sizeof other_stack);
    signal(SIGSEGV, SIG_DFL);
    stack_t disable = {.ss_flags = SS_DISABLE};
    sigaltstack(&disable, NULL);
}

static volatile int order[8], count;

static void on_signal(int signal, siginfo_t *info, void *context) {
    (void)context;
    caught = signal;
    caught_code = info->si_code;
    caught_value = info->si_value.sival_int;
    caught_overrun = info->si_overrun;
    order[count++ & 7] = signal;
}

static void on_nested(int signal, siginfo_t *info, void *context) {
    on_signal(signal, info, context);
    raise(SIGUSR2); /* blocked by sa_mask until this handler returns */
    order[count++ & 7] = -signal;
}

static void signals(void) {
    install(SIGUSR1, on_signal, 0);
    install(SIGUSR2, on_signal, 0);
    volatile double before = 1.25;
    volatile int kept = 12345;
    raise(SIGUSR1);
    check("a raised signal is handled at once", caught == SIGUSR1 && caught_code == SI_TKILL);
    check("... and registers come back", before == 1.25 && kept == 12345);
    sigset_t set, old, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, &old);
    caught = 0;
    kill(getpid(), SIGUSR1);
    sigpending(&pending);
    check("a blocked signal is pending", caught == 0 && sigismember(&pending, SIGUSR1));
    sigprocmask(SIG_SETMASK, &old, NULL);
    check("... and comes when it is unblocked", caught == SIGUSR1 && caught_code == SI_USER);
    struct sigaction action = {.sa_sigaction = on_nested, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGUSR2);
    sigaction(SIGUSR1, &action, NULL);
    count = 0;
    raise(SIGUSR1);
    check("sa_mask holds others back", order[0] == SIGUSR1 && order[1] == -SIGUSR1 && order[2] == SIGUSR2);
    install(SIGUSR1, on_signal, SA_RESETHAND);
    raise(SIGUSR1);
    struct sigaction now;
    sigaction(SIGUSR1, NULL, &now);
    check("SA_RESETHAND resets", now.sa_handler == SIG_DFL);
    sigaddset(&set, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    union sigval value = {.sival_int = 42};
    sigqueue(getpid(), SIGRTMIN, value);
    siginfo_t info;
    struct timespec second = {1, 0};
    check("sigtimedwait takes a queued signal with its value", sigtimedwait(&set, &info, &second) == SIGRTMIN && info.si_value.sival_int == 42);
    check("... and times out", sigtimedwait(&set, &info, &second) == -1 && errno == EAGAIN);
    sigprocmask(SIG_SETMASK, &old, NULL);
    signal(SIGUSR2, SIG_IGN);
    check("an ignored signal does nothing", raise(SIGUSR2) == 0);
    check("SIGKILL cannot be caught", signal(SIGKILL, SIG_IGN) == SIG_ERR && errno == EINVAL);
    check("kill of nobody is ESRCH", kill(4000000, 0) == -1 && errno == ESRCH);
}

static int64_t now_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void times_and_timers(void) {
    int64_t start = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    struct timespec half = {0, 500000000}, left;
    check("nanosleep", nanosleep(&half, NULL) == 0);
    int64_t slept = now_ns(CLOCK_MONOTONIC) - start;
    check("... passes half a second", slept >= 500000000 && slept < 700000000);
    check("... without CPU time", now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu < 100000000);
    install(SIGALRM, on_signal, 0);
    alarm(1);
    struct timespec ten = {10, 0};
    caught = 0;
    check("a signal interrupts nanosleep", nanosleep(&ten, &left) == -1 && errno == EINTR && caught == SIGALRM);
    check("... and the rest is given", left.tv_sec == 8 || left.tv_sec == 9);
    alarm(1);
    check("pause ends with a signal", pause() == -1 && errno == EINTR);
    struct itimerval timer = {{0, 20000}, {0, 20000}};
    setitimer(ITIMER_REAL, &timer, NULL);
    count = 0;
    while (count < 5) {
    }
    struct itimerval off = {{0, 0}, {0, 0}}, was;
    setitimer(ITIMER_REAL, &off, &was);
    check("an interval timer fires again and again", count == 5 && was.it_interval.tv_usec == 20000);
    install(SIGVTALRM, on_signal, 0);
    struct itimerval virtual = {{0, 0}, {0, 10000}};
    caught = 0;
    setitimer(ITIMER_VIRTUAL, &virtual, NULL);
    cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    while (caught != SIGVTALRM) {
    }
    check("ITIMER_VIRTUAL counts CPU time", now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu >= 9000000);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM, .sigev_value.sival_int = 77};
    timer_t posix;
    struct itimerspec spec = {{0, 0}, {0, 1000000}};
    caught_value = 0;
    check("timer_create", timer_create(CLOCK_MONOTONIC, &event, &posix) == 0);
    timer_settime(posix, 0, &spec, NULL);
    pause();
    check("a POSIX timer brings its value", caught_value == 77 && caught_code == SI_TIMER);
    check("... which did not overrun", timer_getoverrun(posix) == 0 && caught_overrun == 0);
    sigset_t alarm_set, old_set;
    sigemptyset(&alarm_set);
    sigaddset(&alarm_set, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm_set, &old_set);
    spec.it_interval.tv_nsec = 50000000;
    timer_settime(posix, 0, &spec, NULL); /* after 1, 51, 101 and 151 ms */
    nanosleep(&(struct timespec){0, 180000000}, NULL);
    check("a pending timer's overruns are not of the last signal", timer_getoverrun(posix) == 0);
    sigprocmask(SIG_SETMASK, &old_set, NULL);
    check("overruns are counted while its signal is blocked", caught_overrun == 3 && timer_getoverrun(posix) == 3);
    timer_delete(posix);
    struct timespec resolution;
    check("clock_getres", clock_getres(CLOCK_MONOTONIC, &resolution) == 0 && resolution.tv_nsec == 1);
    check("a clock that does not exist is EINVAL", clock_gettime(77, &resolution) == -1 && errno == EINVAL);
    check("time agrees with clock_gettime", time(NULL) == now_ns(CLOCK_REALTIME) / 1000000000);
    check("times", times(&(struct tms){0}) != (clock_t)-1);
}

struct header { unsigned version; int pid; };
struct sets { unsigned effective, permitted, inheritable; };
enum { CAP_CHOWN = 0, AMBIENT = 47, IS_SET = 1, RAISE = 2, CLEAR_ALL = 4 };

static void someone_else(void) {
    struct header header = {0x20080522, 0};
    struct sets sets[2];
    check("PR_SET_KEEPCAPS", prctl(PR_GET_KEEPCAPS) == 0 && prctl(PR_SET_KEEPCAPS, 1) == 0 && prctl(PR_GET_KEEPCAPS) == 1);
    check("... takes 0 or 1", prctl(PR_SET_KEEPCAPS, 2) == -1 && errno == EINVAL);
    check("PR_CAPBSET_DROP", prctl(PR_CAPBSET_DROP, 5) == 0 && prctl(PR_CAPBSET_READ, 5) == 0 && prctl(PR_CAPBSET_READ, 6) == 1);
    check("a user of our own choice", setgid(1000) == 0 && setuid(1000) == 0 && getuid() == 1000);
    check("... keeps what it may, and does not have it", syscall(SYS_capget, &header, sets) == 0 && !sets[0].effective && sets[0].permitted == ~0u);
    check("... cannot go back", setuid(0) == -1 && errno == EPERM);
    check("nothing is ambient that is not inherited", prctl(AMBIENT, RAISE, CAP_CHOWN, 0, 0) == -1 && errno == EPERM);
    sets[0] = (struct sets){1, 1, 1};
    sets[1] = (struct sets){0};
    check("capset", syscall(SYS_capset, &header, sets) == 0);
    check("PR_CAP_AMBIENT", prctl(AMBIENT, RAISE, CAP_CHOWN, 0, 0) == 0 && prctl(AMBIENT, IS_SET, CAP_CHOWN, 0, 0) == 1);
    sets[0].permitted = 3;
    check("... no more than before", syscall(SYS_capset, &header, sets) == -1 && errno == EPERM);
    int file = open("/tmp/somebody", O_CREAT | O_RDWR, 0600);
    struct stat status;
    check("its files are its own", fstat(file, &status) == 0 && status.st_uid == 1000 && status.st_gid == 1000);
    check("CAP_CHOWN gives them away", fchown(file, 7, 8) == 0 && fstat(file, &status) == 0 && status.st_uid == 7 && status.st_gid == 8);
    check("... and then they are another's", open("/tmp/somebody", O_RDONLY) == -1 && errno == EACCES);
    check("... to change, too", fchmod(file, 0644) == -1 && errno == EPERM);
    check("PR_CAP_AMBIENT_CLEAR_ALL", prctl(AMBIENT, CLEAR_ALL, 0, 0, 0) == 0 && prctl(AMBIENT, IS_SET, CAP_CHOWN, 0, 0) == 0);
}

static void capabilities(void) {
    if (getuid() != 0) return;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        someone_else();
        fflush(stdout);
        _exit(failures != 0);
    }
    int status;
    check("capabilities", waitpid(child, &status, 0) == child && status == 0);
}

static void identity(void) {
    struct utsname name;
    check("uname", uname(&name) == 0 && strcmp(name.sysname, "Linux") == 0);
    check("gettid is getpid", syscall(SYS_gettid) == getpid());
    check("prctl names the thread", prctl(PR_SET_NAME, "a name that is too long") == 0);
    char comm[17] = "";
    prctl(PR_GET_NAME, comm);
    check("... cut at 15", strcmp(comm, "a name that is ") == 0);
    unsigned char bytes[64] = {0}, zeros[64] = {0};
    check("getrandom", getrandom(bytes, 64, 0) == 64 && memcmp(bytes, zeros, 64) != 0);
    check("AT_RANDOM is not zero", memcmp((void *)getauxval(AT_RANDOM), zeros, 16) != 0);
    check("AT_PAGESZ", getauxval(AT_PAGESZ) == 4096);
    struct rlimit limit;
    check("getrlimit", getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur == 8 << 20);
    limit.rlim_cur = 4 << 20;
    check("setrlimit", setrlimit(RLIMIT_STACK, &limit) == 0 && getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur == 4 << 20);
    struct rusage usage;
    check("getrusage", getrusage(RUSAGE_SELF, &usage) == 0 && usage.ru_minflt > 0);
    cpu_set_t set;
    check("sched_getaffinity", sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) >= 1);
    check("wait is ECHILD", wait(NULL) == -1 && errno == ECHILD);
    unsigned nobody = 0, word = 5;
    long woken = syscall(SYS_futex, &nobody, 5 /* WAKE_OP */, 1, 1, &word, 1u << 28 | 0xFFEu << 12); /* ADD -2 */
    check("FUTEX_WAKE_OP changes the word", woken == 0 && word == 3);
    woken = syscall(SYS_futex, &nobody, 5, 1, 1, &word, 11u << 28 | 1 << 12); /* ANDN of bit 1 */
    check("... by the number of a bit", woken == 0 && word == 1);
    check("... as it can", syscall(SYS_futex, &nobody, 5, 1, 1, &word, 5u << 28) == -1 && errno == ENOSYS && word == 1);
    check("an unknown syscall is ENOSYS", syscall(9999) == -1 && errno == ENOSYS);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "executed") == 0) {
        sigset_t blocked;
        sigprocmask(SIG_SETMASK, NULL, &blocked);
        check("execve keeps the mask and the arguments", sigismember(&blocked, SIGUSR1) && argc == 3 && strcmp(argv[2], "again") == 0);
        check("... gives the new environment", getenv("NEW") && strcmp(getenv("NEW"), "1") == 0 && !getenv("OLD"));
        struct sigaction now;
        sigaction(SIGUSR1, NULL, &now);
        check("... resets handlers", now.sa_handler == SIG_DFL);
        sigaction(SIGUSR2, NULL, &now);
        check("... keeps what is ignored", now.sa_handler == SIG_IGN);
        check("... closes what is to be closed", fcntl(10, F_GETFD) == -1 && fcntl(11, F_GETFD) == 0);
        puts(failures ? "FAILED" : "passed");
        fflush(stdout);
        return failures != 0;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    faults();
    files();
    memory();
    stack();
    signals();
    times_and_timers();
    identity();
    capabilities();
    if (failures) return 1;
    install(SIGUSR1, on_signal, 0);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    dup3(0, 10, O_CLOEXEC);
    dup2(0, 11);
    char *arguments[] = {argv[0], "executed", "again", NULL}, *environment[] = {"NEW=1", NULL};
    execve("/no/such/program", arguments, environment);
    check("execve of nothing is ENOENT", errno == ENOENT);
    fflush(stdout);
    execve(argv[1] ? argv[1] : argv[0], arguments, environment);
    check("execve", 0);
    return 1;
}
