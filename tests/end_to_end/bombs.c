/* Programs that take whatever they can get of one thing, without end, or until it is refused: then they print how many
   they got and the errno, and exit. What they have got they keep. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MIB (1L << 20)

static char block[1 << 16];
static long got;

static void over(const char* what) {
    printf("%s: %ld: %s\n", what, got, strerrorname_np(errno));
    fflush(stdout);
    _exit(0);
}

static void many_descriptors(void) {
    struct rlimit limit = {524288, 524288};
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void memory(void) {
    for (;; got++) {
        char* at = mmap(0, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) over("MiB");
        memset(at, 1, MIB);
    }
}

static void shared(void) {
    for (;; got++) {
        char* at = mmap(0, MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) over("MiB");
        memset(at, 1, MIB);
    }
}

static void zeros(void) { /* pages that are only read share one frame; the tables with their entries grow */
    volatile char* at = mmap(0, 1L << 40, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_POPULATE, -1, 0);
    if (at == MAP_FAILED) over("pages");
    for (;; got++) (void)at[got << 20];
}

static void mappings(void) {
    for (;; got++)
        if (mmap(0, 4096, got & 1 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
            over("mappings");
}

static void heap(void) {
    for (;; got++) {
        char* at = sbrk(MIB);
        if (at == (void*)-1) over("MiB");
        memset(at, 1, MIB);
    }
}

static long deeper(long depth) {
    volatile char frame[65536];
    frame[0] = (char)depth;
    got = depth;
    return deeper(depth + 1) + frame[0];
}

static void stack(void) {
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_STACK, &limit);
    deeper(0);
}

static void forks(void) {
    for (;;) {
        pid_t pid = fork();
        if (pid < 0 && getppid() != 1) usleep(1000);
    }
}

static int thread(void* unused) {
    for (;;) pause();
}

static void threads(void) {
    for (;; got++) {
        char* at = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) over("stacks");
        int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
        if (clone(thread, at + 65536, flags, 0) < 0) over("threads");
    }
}

static void children(void) { /* who is never waited for */
    for (;; got++) {
        pid_t pid = fork();
        if (pid < 0) over("children");
        if (!pid) _exit(0);
    }
}

static void forked_memory(void) { /* pages that are one as long as nobody writes them */
    char* at = mmap(0, 20 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(at, 1, 20 * MIB);
    for (;; got++) {
        pid_t pid = fork();
        if (pid < 0) over("children");
        if (!pid) {
            memset(at, 2, 20 * MIB);
            for (;;) pause();
        }
    }
}

static void files(void) {
    int fd = open("/tmp/bomb", O_CREAT | O_RDWR, 0600);
    for (;; got++)
        if (write(fd, block, sizeof block) <= 0) over("blocks");
}

static void holes(void) {
    int fd = memfd_create("bomb", 0);
    for (;; got++)
        if (ftruncate(fd, (got + 1) << 26) < 0 || pwrite(fd, "x", 1, got << 26) < 0) over("pieces");
}

static void names(void) {
    char name[300];
    mkdir("/tmp/names", 0700);
    for (;; got++) {
        sprintf(name, "/tmp/names/%0200ld", got);
        int fd = open(name, O_CREAT | O_RDWR, 0600);
        if (fd < 0) over("names");
        close(fd);
    }
}

static void links(void) {
    char name[300];
    memset(block, 'x', 4000);
    block[4000] = 0;
    mkdir("/tmp/links", 0700);
    for (;; got++) {
        sprintf(name, "/tmp/links/%ld", got);
        if (symlink(block, name) < 0) over("links");
    }
}

static void pipes(void) {
    many_descriptors();
    for (;; got++) {
        int ends[2];
        if (pipe2(ends, O_NONBLOCK) < 0) over("pipes");
        fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
        while (write(ends[1], block, sizeof block) > 0) {
        }
        if (errno != EAGAIN) over("pipes");
    }
}

static void fill_sockets(int kind, size_t size) {
    many_descriptors();
    for (;; got++) {
        int ends[2], room = 1 << 24;
        if (socketpair(AF_UNIX, kind | SOCK_NONBLOCK, 0, ends) < 0) over("pairs");
        setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
        setsockopt(ends[1], SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
        while (send(ends[0], block, size, MSG_NOSIGNAL) >= 0) {
        }
        if (errno != EAGAIN) over("pairs");
    }
}

static void streams(void) { fill_sockets(SOCK_STREAM, sizeof block); }
static void datagrams(void) { fill_sockets(SOCK_DGRAM, 1); }
static void empty_datagrams(void) { fill_sockets(SOCK_DGRAM, 0); }

static void descriptors(void) {
    many_descriptors();
    for (;; got++)
        if (eventfd(0, 0) < 0) over("descriptors");
}

static void duplicates(void) {
    struct rlimit limit = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_NOFILE, &limit);
    for (;; got++)
        if (dup(0) < 0) over("descriptors");
}

static void passed_descriptors(void) { /* in messages that nobody takes, and closed here */
    int ends[2];
    socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends);
    for (;; got++) {
        int fd[2];
        if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fd) < 0) over("messages");
        char control[CMSG_SPACE(sizeof fd)] = {0};
        struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
        struct cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(header), ends, sizeof fd); /* each socket holds those before it */
        if (sendmsg(fd[0], &message, 0) < 0) over("messages");
        close(ends[0]);
        close(ends[1]);
        memcpy(ends, fd, sizeof fd);
    }
}

static void polls(void) {
    many_descriptors();
    int instance = epoll_create1(0);
    for (;; got++) {
        struct epoll_event event = {EPOLLIN, {0}};
        int fd = epoll_create1(0);
        if (fd < 0 || epoll_ctl(instance, EPOLL_CTL_ADD, fd, &event) < 0) over("instances");
    }
}

static void timers(void) {
    for (;; got++) {
        timer_t timer;
        struct sigevent event = {.sigev_notify = SIGEV_NONE};
        if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0) over("timers");
        struct itimerspec soon = {{0, 1000000}, {0, 1000000}};
        timer_settime(timer, 0, &soon, 0);
    }
}

static void fast_timers(void) { /* every nanosecond */
    many_descriptors();
    for (;; got++) {
        int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
        struct itimerspec soon = {{0, 1}, {0, 1}};
        if (fd < 0 || timerfd_settime(fd, 0, &soon, 0) < 0) over("timers");
        if (got == 100) {
            struct pollfd polled = {fd, POLLIN, 0};
            for (;;) poll(&polled, 1, 1);
        }
    }
}

static void handle(int number) { got++; }

static void alarms(void) { /* a signal every microsecond, which is as often as anything can be done */
    signal(SIGALRM, handle);
    struct itimerval often = {{0, 1}, {0, 1}};
    setitimer(ITIMER_REAL, &often, 0);
    for (;;) pause();
}

static void queued_signals(void) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, 0);
    union sigval value = {0};
    for (;; got++)
        if (sigqueue(getpid(), SIGRTMIN, value) < 0) over("signals");
}

static void locks(void) {
    int fd = open("/tmp/locked", O_CREAT | O_RDWR, 0600);
    for (;; got++) {
        struct flock lock = {.l_type = F_WRLCK, .l_start = got * 2, .l_len = 1};
        if (fcntl(fd, F_SETLK, &lock) < 0) over("locks");
    }
}

static void vectors(void) { /* huge transfers in one call */
    int zero = open("/dev/zero", O_RDWR);
    struct iovec vector[1024];
    char* at = mmap(0, 16 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 1024; i++) vector[i] = (struct iovec){at, 16 * MIB};
    for (;; got++)
        if (readv(zero, vector, 1024) < 0 || writev(zero, vector, 1024) < 0) over("transfers");
}

static void programs(void) { /* itself, for ever */
    static char* arguments[] = {"bombs", "programs", 0};
    execv("/proc/self/exe", arguments);
    over("programs");
}

static void calls(void) { /* that are not there: each would be named */
    for (;; got++) syscall(1000 + got, 0, 0, 0, 0, 0, 0);
}

static void paths(void) { /* that are not there, and may not be made */
    char name[64];
    for (;; got++) {
        sprintf(name, "/etc/none/%ld", got);
        open(name, O_RDONLY);
        sprintf(name, "/none%ld", got);
        open(name, O_RDWR | O_CREAT, 0600);
    }
}

static void code(void) { /* functions of one instruction, ever other ones */
    long size = 8 * MIB;
    unsigned char* at = mmap(0, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#ifdef __x86_64__
    long step = 1;
    memset(at, 0xc3, size); /* ret */
#else
    long step = 4;
    for (long i = 0; i < size; i += step) *(unsigned*)(at + i) = 0xd65f03c0; /* ret */
    __builtin___clear_cache((char*)at, (char*)at + size);
#endif
    for (;; got++) ((void (*)(void))(at + got * step % size))();
}

static const struct {
    const char* name;
    void (*explode)(void);
} BOMBS[] = {
#define BOMB(name) {#name, name}
    BOMB(memory),        BOMB(shared),         BOMB(zeros),
    BOMB(mappings),      BOMB(heap),           BOMB(stack),
    BOMB(forks),         BOMB(threads),        BOMB(children),
    BOMB(forked_memory), BOMB(files),          BOMB(holes),
    BOMB(names),         BOMB(links),          BOMB(pipes),
    BOMB(streams),       BOMB(datagrams),      BOMB(empty_datagrams),
    BOMB(descriptors),   BOMB(duplicates),     BOMB(passed_descriptors),
    BOMB(polls),         BOMB(timers),         BOMB(fast_timers),
    BOMB(alarms),        BOMB(queued_signals), BOMB(locks),
    BOMB(vectors),       BOMB(programs),       BOMB(calls),
    BOMB(paths),         BOMB(code),
};

int main(int count, char** arguments) {
    for (size_t i = 0; i < sizeof BOMBS / sizeof *BOMBS; i++)
        if (count == 2 && !strcmp(arguments[1], BOMBS[i].name)) BOMBS[i].explode();
    return 2;
}
