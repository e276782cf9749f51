/* pidfds, other processes' memory, comparisons, several futexes. */
#include "show.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif
#define SYS_PIDFD_OPEN 434
#define SYS_PIDFD_SEND_SIGNAL 424
#define SYS_PIDFD_GETFD 438
#define SYS_FUTEX_WAITV 449
#define SYS_CLONE3 435
#define SYS_CLOSE_RANGE 436

static int revents(int fd, int timeout) {
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, timeout) < 0 ? -1 : one.revents;
}

static void pidfds(void) {
    int ends[2], back[2];
    pipe(ends), pipe(back);
    pid_t child = fork();
    if (!child) {
        char c;
        close(ends[1]);
        int own = open("/dev/null", O_RDONLY);
        dup2(own, 200);
        write(back[1], "r", 1);
        read(ends[0], &c, 1);
        _exit(7);
    }
    char c;
    read(back[0], &c, 1);
    int fd = syscall(SYS_PIDFD_OPEN, child, 0);
    SHOW(fd >= 0);
    SHOW(fcntl(fd, F_GETFD));
    SHOW(syscall(SYS_PIDFD_OPEN, child, 1));
    SHOW(syscall(SYS_PIDFD_OPEN, 0, 0));
    SHOW(syscall(SYS_PIDFD_OPEN, 4194000, 0));
    SHOW(revents(fd, 0));
    SHOW(syscall(SYS_PIDFD_SEND_SIGNAL, fd, 0, NULL, 0));
    SHOW(syscall(SYS_PIDFD_SEND_SIGNAL, fd, 99, NULL, 0));
    SHOW(syscall(SYS_PIDFD_SEND_SIGNAL, ends[0], 0, NULL, 0));
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", child);
    int in_proc = open(path, O_RDONLY | O_DIRECTORY);
    SHOW(syscall(SYS_PIDFD_SEND_SIGNAL, in_proc, 0, NULL, 0));
    SHOW(syscall(SYS_PIDFD_GETFD, in_proc, 200, 0));
    close(in_proc);
    int got = syscall(SYS_PIDFD_GETFD, fd, 200, 0);
    SHOW(got >= 0);
    SHOW(read(got, &c, 1));
    SHOW(syscall(SYS_PIDFD_GETFD, fd, 201, 0));
    SHOW(syscall(SYS_PIDFD_GETFD, fd, 200, 1));
    siginfo_t info = {0};
    SHOW(waitid(P_PIDFD, fd, &info, WEXITED | WNOHANG));
    SHOW(waitid(P_PIDFD, ends[0], &info, WEXITED));
    int nonblocking = syscall(SYS_PIDFD_OPEN, child, O_NONBLOCK);
    SHOW(waitid(P_PIDFD, nonblocking, &info, WEXITED));
    write(ends[1], "x", 1);
    SHOW(revents(fd, -1));
    SHOW(waitid(P_PIDFD, fd, &info, WEXITED | WNOWAIT));
    SHOW(info.si_pid == child && info.si_status == 7 && info.si_code == CLD_EXITED);
    SHOW(waitid(P_PIDFD, fd, &info, WEXITED));
    SHOW(waitid(P_PIDFD, fd, &info, WEXITED));
    SHOW(syscall(SYS_PIDFD_SEND_SIGNAL, fd, SIGTERM, NULL, 0));
    SHOW(syscall(SYS_PIDFD_OPEN, child, 0));
    close(fd);

    struct {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
    } arguments = {.flags = 0x1000, .exit_signal = SIGCHLD};
    int made = -1;
    arguments.pidfd = (uintptr_t)&made;
    child = syscall(SYS_CLONE3, &arguments, sizeof arguments);
    if (!child) {
        pause();
        _exit(1);
    }
    SHOW(made >= 0);
    SHOW(syscall(SYS_PIDFD_SEND_SIGNAL, made, SIGKILL, NULL, 0));
    SHOW(revents(made, -1) & POLLIN);
    SHOW(waitid(P_PIDFD, made, &info, WEXITED));
    SHOW(info.si_status == SIGKILL && info.si_code == CLD_KILLED);
    SHOW(syscall(SYS_clone, 0x1000 | 0x100000 | SIGCHLD, 0, &made, 0, 0));
    struct rlimit before, none;
    getrlimit(RLIMIT_NOFILE, &before);
    none = before, none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    SHOW(syscall(SYS_CLONE3, &arguments, sizeof arguments));
    setrlimit(RLIMIT_NOFILE, &before);
    SHOW(waitpid(-1, NULL, 0)); /* and there is no child */
}

static void memory_of_others(void) {
    char *area = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), here[8192];
    munmap(area + 4096, 4096);
    memset(area, 'a', 4096);
    pid_t child = fork();
    if (!child) {
        strcpy(area, "of the child");
        raise(SIGSTOP);
        _exit(strcmp(area, "written") != 0);
    }
    int status;
    waitpid(child, &status, WUNTRACED);
    struct iovec own[2] = {{here, 6}, {here + 100, 20}}, other[2] = {{area, 12}, {area + 4000, 96}};
    SHOW(process_vm_readv(child, own, 2, other, 1, 0));
    printf("%.6s %.6s\n", here, here + 100);
    other[0].iov_base = area + 4090;
    own[0].iov_len = 8192;
    SHOW(process_vm_readv(child, own, 1, other, 1, 0));
    other[0].iov_base = area + 4096;
    SHOW(process_vm_readv(child, own, 1, other, 1, 0));
    SHOW(process_vm_readv(child, own, 1, other, 1, 1));
    SHOW(process_vm_readv(4194000, own, 1, other, 1, 0));
    strcpy(here, "written");
    own[0].iov_len = 8;
    other[0].iov_base = area;
    SHOW(process_vm_writev(child, own, 1, other, 1, 0));
    SHOW(area[0]);
    kill(child, SIGCONT);
    waitpid(child, &status, 0);
    SHOW(status);
}

static void comparisons(void) {
    pid_t self = getpid();
    int one = open("/dev/null", O_RDONLY), two = dup(one), three = open("/dev/null", O_RDONLY);
    SHOW(syscall(SYS_kcmp, self, self, 0, one, two));
    SHOW(syscall(SYS_kcmp, self, self, 0, one, three) > 0);
    SHOW(syscall(SYS_kcmp, self, self, 0, one, 999));
    SHOW(syscall(SYS_kcmp, self, self, 1, 0, 0));
    SHOW(syscall(SYS_kcmp, self, 4194000, 1, 0, 0));
    SHOW(syscall(SYS_kcmp, self, self, 99, 0, 0));
    pid_t child = fork();
    if (!child) pause(), _exit(0);
    SHOW(syscall(SYS_kcmp, self, child, 0, one, two));
    SHOW(syscall(SYS_kcmp, self, child, 1, 0, 0) > 0);
    struct rlimit limit = {123, 456}, old;
    SHOW(prlimit(child, RLIMIT_CORE, &limit, NULL));
    SHOW(prlimit(child, RLIMIT_CORE, NULL, &old));
    SHOW(old.rlim_cur * 1000 + old.rlim_max);
    SHOW(prlimit(4194000, RLIMIT_CORE, NULL, &old));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static uint32_t words[4];
struct waitv { uint64_t value, address; uint32_t flags, reserved; };

static void *wakes(void *unused) {
    usleep(20000);
    words[2] = 1;
    syscall(SYS_futex, &words[2], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    return unused;
}

static void futexes(void) {
    struct waitv waiters[3];
    for (int i = 0; i < 3; i++) waiters[i] = (struct waitv){0, (uintptr_t)&words[i], 2 | 128, 0};
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    SHOW(syscall(SYS_FUTEX_WAITV, waiters, 3, 0, &until, CLOCK_MONOTONIC));
    SHOW(syscall(SYS_FUTEX_WAITV, waiters, 0, 0, &until, CLOCK_MONOTONIC));
    SHOW(syscall(SYS_FUTEX_WAITV, waiters, 3, 1, &until, CLOCK_MONOTONIC));
    SHOW(syscall(SYS_FUTEX_WAITV, waiters, 3, 0, &until, 7));
    pthread_t thread;
    pthread_create(&thread, NULL, wakes, NULL);
    SHOW(syscall(SYS_FUTEX_WAITV, waiters, 3, 0, NULL, 0));
    pthread_join(thread, NULL);
    SHOW(syscall(SYS_FUTEX_WAITV, waiters, 3, 0, NULL, 0));
    waiters[0].flags = 1 | 128;
    SHOW(syscall(SYS_FUTEX_WAITV, waiters, 3, 0, NULL, 0));
}

static void *closes(void *unused) {
    SHOW(syscall(SYS_CLOSE_RANGE, 100, 110, 2));
    SHOW(fcntl(100, F_GETFD));
    return unused;
}

static void ranges(void) {
    dup2(0, 100);
    pthread_t thread;
    pthread_create(&thread, NULL, closes, NULL);
    pthread_join(thread, NULL);
    SHOW(fcntl(100, F_GETFD));
    SHOW(syscall(SYS_CLOSE_RANGE, 100, 110, 4));
    SHOW(fcntl(100, F_GETFD));
    SHOW(syscall(SYS_CLOSE_RANGE, 110, 100, 0));
    SHOW(syscall(SYS_CLOSE_RANGE, 100, 110, 0));
    SHOW(fcntl(100, F_GETFD));
}

int main(void) {
    pidfds();
    memory_of_others();
    comparisons();
    futexes();
    ranges();
    return 0;
}
