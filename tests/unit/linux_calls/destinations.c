/* Reads whose destination cannot take all: what arrives, what is told, and what the next read finds. */
#include "show.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <termios.h>

enum { PAGE = 4096, MOST = 1 << 17 };

static char *good;     /* MOST bytes, and behind them one page that may not be touched: `bad` */
static char *bad;
static char *readonly; /* may be read, not written */
static int other = -1; /* what a kind needs besides its descriptor */
static char directory[64];

/* ---- the kinds: each opens a file in which `size` bytes wait */

static void pattern(int fd, int size) {
    char data[MOST];
    for (int i = 0; i < size; i++) data[i] = 'a' + i % 26;
    if (write(fd, data, size) != size) perror("write");
}

static int pipe_of(int first, int second) {
    int ends[2];
    pipe2(ends, O_NONBLOCK);
    other = ends[1];
    pattern(other, first);
    if (second) pattern(other, second);
    return ends[0];
}
static int one_write(void) { return pipe_of(8, 0); }
static int two_writes(void) { return pipe_of(4, 4); }
static int pages(void) { return pipe_of(3 * PAGE, 0); }
static int uneven_pages(void) { return pipe_of(5000, 5000); }
static int merged(void) { return pipe_of(4090, 12); }

static int pair_of(int type, int first, int second) {
    int ends[2];
    socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, ends);
    other = ends[1];
    pattern(other, first);
    if (second) pattern(other, second);
    return ends[0];
}
static int stream(void) { return pair_of(SOCK_STREAM, 8, 0); }
static int two_sends(void) { return pair_of(SOCK_STREAM, 4, 4); }
static int long_stream(void) { return pair_of(SOCK_STREAM, 80000, 0); }
static int datagram(void) { return pair_of(SOCK_DGRAM, 8, 8); }
static int packets(void) { return pair_of(SOCK_SEQPACKET, 8, 8); }

static int loopback(int type) {
    struct sockaddr_in name = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof name;
    int server = socket(AF_INET, type, 0), found = server;
    bind(server, (void *)&name, size);
    getsockname(server, (void *)&name, &size);
    if (type == SOCK_STREAM) listen(server, 1);
    other = socket(AF_INET, type, 0);
    connect(other, (void *)&name, size);
    if (type == SOCK_STREAM) found = accept(server, 0, 0), close(server);
    pattern(other, 8);
    if (type == SOCK_DGRAM) pattern(other, 8);
    struct pollfd one = {found, POLLIN};
    poll(&one, 1, 1000);
    fcntl(found, F_SETFL, O_NONBLOCK);
    return found;
}
static int tcp(void) { return loopback(SOCK_STREAM); }
static int udp(void) { return loopback(SOCK_DGRAM); }

static int counter(void) { return eventfd(0x6867666564636261 & 0x7fffffffffffffff, EFD_NONBLOCK); }
static int semaphore(void) { return eventfd(2, EFD_NONBLOCK | EFD_SEMAPHORE); }
static int timer(void) {
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct itimerspec soon = {{0, 0}, {0, 1}};
    timerfd_settime(fd, 0, &soon, 0);
    struct pollfd one = {fd, POLLIN};
    poll(&one, 1, 1000);
    return fd;
}
static int signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1), sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, 0);
    int fd = signalfd(-1, &set, SFD_NONBLOCK);
    char spare[128];
    while (read(fd, spare, sizeof spare) > 0) {}
    kill(getpid(), SIGUSR1), kill(getpid(), SIGUSR2);
    return fd;
}
static int notices(void) {
    int fd = inotify_init1(IN_NONBLOCK);
    char path[128];
    inotify_add_watch(fd, directory, IN_CREATE | IN_DELETE);
    snprintf(path, sizeof path, "%s/a", directory);
    close(open(path, O_CREAT | O_RDWR, 0600));
    unlink(path);
    return fd;
}
static int terminal(int slave, int raw) {
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    grantpt(master), unlockpt(master);
    int end = open(ptsname(master), O_RDWR | O_NOCTTY);
    struct termios modes;
    tcgetattr(end, &modes);
    modes.c_lflag &= raw ? ~(ECHO | ICANON) : ~ECHO, modes.c_oflag &= ~OPOST;
    tcsetattr(end, TCSANOW, &modes);
    int reader = slave ? end : master;
    other = slave ? master : end;
    write(other, "0123456789012345678901234567890123456789012345678901234567890123456789012345678\n", 80);
    write(other, "second\n", 7);
    fcntl(reader, F_SETFL, O_NONBLOCK);
    struct pollfd one = {reader, POLLIN};
    poll(&one, 1, 1000);
    usleep(20000);
    return reader;
}
static int typed(void) { return terminal(1, 0); }
static int raw(void) { return terminal(1, 1); }
static int shown(void) { return terminal(0, 0); }
static int zero(void) { return open("/dev/zero", O_RDONLY); }
static int null(void) { return open("/dev/null", O_RDONLY); }
static int full(void) { return open("/dev/full", O_RDONLY); }
static int randoms(void) { return open("/dev/urandom", O_RDONLY); }
static int filled(int fd, int size) {
    pattern(fd, size);
    lseek(fd, 0, SEEK_SET);
    return fd;
}
static int regular(void) {
    char path[128];
    snprintf(path, sizeof path, "%s/regular", directory);
    int fd = filled(open(path, O_CREAT | O_RDWR | O_TRUNC, 0600), 10000);
    unlink(path);
    return fd;
}
static int unlinked(void) { return filled(open("/tmp", O_TMPFILE | O_RDWR, 0600), 10000); }
static int memory_file(void) { return filled(memfd_create("of", 0), 10000); }
static int a_directory(void) { return open(directory, O_RDONLY); }
static int comm(void) { return open("/proc/self/comm", O_RDONLY); }
static int filesystems(void) { return open("/proc/filesystems", O_RDONLY); }
static int sys_file(void) { return open("/sys/devices/system/cpu/cpu0/topology/physical_package_id", O_RDONLY); }
static int pagemap(void) {
    int fd = open("/proc/self/pagemap", O_RDONLY);
    lseek(fd, (uintptr_t)good / PAGE * 8, SEEK_SET);
    return fd;
}
static int own_memory(void) {
    static char text[9 * PAGE] __attribute__((aligned(PAGE)));
    for (unsigned i = 0; i < sizeof text; i++) text[i] = 'A' + i / 1000;
    int fd = open("/proc/self/mem", O_RDONLY);
    lseek(fd, (uintptr_t)text, SEEK_SET);
    return fd;
}
static int queue(void) {
    char name[64];
    struct mq_attr few = {.mq_maxmsg = 3, .mq_msgsize = 8};
    sprintf(name, "/perfemu-d-%d", getpid());
    int fd = mq_open(name, O_RDWR | O_CREAT | O_NONBLOCK, 0600, &few);
    mq_unlink(name);
    mq_send(fd, "firstone", 8, 2), mq_send(fd, "second..", 8, 1);
    return fd;
}
static int write_only(void) { return open("/dev/null", O_WRONLY); }

/* ---- how they are read */

typedef long Read(int fd, struct iovec *to, int count);

static long by_read(int fd, struct iovec *to, int count) {
    return count == 1 ? read(fd, to->iov_base, to->iov_len) : readv(fd, to, count);
}
static long by_pread(int fd, struct iovec *to, int count) {
    return count == 1 ? pread(fd, to->iov_base, to->iov_len, 3) : preadv(fd, to, count, 3);
}
static long message(int fd, struct iovec *to, int count, int flags) {
    struct msghdr header = {.msg_iov = to, .msg_iovlen = count};
    long done = recvmsg(fd, &header, flags);
    if (done >= 0) printf("flags %x ", header.msg_flags);
    return done;
}
static long by_recvmsg(int fd, struct iovec *to, int count) { return message(fd, to, count, 0); }
static long by_peek(int fd, struct iovec *to, int count) { return message(fd, to, count, MSG_PEEK); }
static long by_waitall(int fd, struct iovec *to, int count) { return message(fd, to, count, MSG_WAITALL); }
static long by_recv(int fd, struct iovec *to, int count) {
    return count == 1 ? recv(fd, to->iov_base, to->iov_len, 0) : -1;
}
static long by_getdents(int fd, struct iovec *to, int count) {
    return count == 1 ? syscall(SYS_getdents64, fd, to->iov_base, to->iov_len) : -1;
}
static long by_getrandom(int fd, struct iovec *to, int count) {
    return count == 1 ? getrandom(to->iov_base, to->iov_len, 0) : -1;
}
static long by_mq_receive(int fd, struct iovec *to, int count) {
    return count == 1 ? mq_receive(fd, to->iov_base, to->iov_len, 0) : -1;
}
static long by_timer(int fd, struct iovec *to, int count) { return by_read(fd, to, count); }
static long by_vmsplice(int fd, struct iovec *to, int count) { return vmsplice(fd, to, count, SPLICE_F_NONBLOCK); }

/* ---- the destinations */

static void clear(long size) { memset(good, '-', size), memset(bad - size, '-', size); }

static long arrived(const char *from, long size) {
    long count = 0;
    while (size--) count += *from++ != '-';
    return count;
}

static void show(const char *what, long done, long size, int readable) {
    printf("  %s: %ld%s%s", what, done, done < 0 ? " " : "", done < 0 ? strerror(errno) : "");
    if (readable) {
        printf(", %ld + %ld ", arrived(good, size), arrived(bad - size, size));
        for (long i = 0; i < size && i < 8; i++) putchar(good[i] >= ' ' && good[i] < 127 ? good[i] : '.');
    }
}

static void try(const char *kind, const char *what, int (*make)(void), Read *by, long size, int readable,
                struct iovec *to, int count) {
    other = -1;
    int fd = make();
    if (fd < 0) printf("%s: %s\n", kind, strerror(errno));
    clear(size);
    errno = 0;
    printf("%s, %s:", kind, what);
    long done = by(fd, to, count);
    show("first", done, size, readable);
    for (int again = 0; again < 2; again++) {
        struct iovec next = {good, size};
        clear(size);
        errno = 0;
        done = by(fd, &next, 1);
        show("next", done, size, readable);
    }
    putchar('\n');
    close(fd);
    if (other >= 0) close(other);
}

static void kind(const char *name, int (*make)(void), Read *by, long size, int readable, int vectors) {
    long half = size / 2;
    char *end = bad;
#define TRY(what, ...) do { struct iovec to[] = {__VA_ARGS__}; \
        try(name, what, make, by, size, readable, to, sizeof to / sizeof *to); } while (0)
    TRY("good", {good, size});
    TRY("bad", {bad, size});
    TRY("read-only", {readonly, size});
    TRY("null", {0, size});
    TRY("of the kernel", {(char *)-4096L, size});
    if (by != by_timer) { /* later kernels give a timer's count in parts */
        TRY("half", {end - half, size});
        TRY("all but one", {end - size + 1, size});
    }
    TRY("one byte", {good, 1});
    TRY("no bytes", {bad, 0});
    TRY("short", {good, half});
    if (!vectors) return;
    TRY("two halves", {good, half}, {good + half, size - half});
    TRY("bad, good", {bad, half}, {good, size - half});
    TRY("good, bad", {good, half}, {bad, size - half});
    TRY("empty bad, good", {bad, 0}, {good, size});
    TRY("good, empty bad", {good, size}, {bad, 0});
    TRY("good, of the kernel", {good, half}, {(char *)-4096L, size - half});
    TRY("across", {end - half, size}, {good, size});
}

/* ---- what is not one of these */

static void epolls(void) {
    struct epoll_event *at = (struct epoll_event *)bad - 1, event = {EPOLLIN};
    int poll = epoll_create1(0), one = eventfd(1, 0), two = eventfd(1, 0);
    event.data.u64 = 1, epoll_ctl(poll, EPOLL_CTL_ADD, one, &event);
    event.data.u64 = 2, event.events |= EPOLLET, epoll_ctl(poll, EPOLL_CTL_ADD, two, &event);
    SHOW(epoll_wait(poll, (void *)bad, 2, 0));
    SHOW(epoll_wait(poll, (void *)-4096L, 2, 0));
    SHOW(epoll_wait(poll, at, 2, 0));
    SHOW(at->data.u64);
    SHOW(epoll_wait(poll, (void *)good, 2, 0));
    struct epoll_event *told = (void *)good;
    SHOW(told[0].data.u64 + told[1].data.u64);
    SHOW(epoll_wait(poll, (void *)good, 2, 0));
    SHOW(epoll_wait(poll, (void *)good, 2, 0));
    close(poll), close(one), close(two);
}

static void system_v(void) {
    struct { long type; char text[8]; } sent = {3, "message"}, *split = (void *)(bad - 12);
    int queue = msgget(IPC_PRIVATE, 0600);
    for (int i = 0; i < 4; i++) msgsnd(queue, &sent, 8, 0);
    SHOW(msgrcv(queue, bad, 8, 0, IPC_NOWAIT));
    SHOW(msgrcv(queue, split, 8, 0, IPC_NOWAIT));
    SHOW(split->type);
    SHOW(msgrcv(queue, bad - 8, 8, 0, IPC_NOWAIT));
    SHOW(msgrcv(queue, good, 4, 0, IPC_NOWAIT));
    SHOW(msgrcv(queue, good, 8, 0, IPC_NOWAIT));
    SHOW(msgrcv(queue, good, 8, 0, IPC_NOWAIT));
    msgctl(queue, IPC_RMID, 0);
}

static int count_open(void) {
    int count = 0;
    for (int fd = 0; fd < 100; fd++) count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void send_file(int to, int file) {
    union { struct cmsghdr header; char space[CMSG_SPACE(4)]; } control = {{CMSG_LEN(4), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec data = {"12345678", 8};
    struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_LEN(4)};
    memcpy(CMSG_DATA(&control.header), &file, 4);
    if (sendmsg(to, &header, 0) != 8) perror("sendmsg");
}

/* A message with an open file in it: which part of the answer cannot be told. */
static void files(int type) {
    struct { const char *what; char *data, *control, *name; } rows[] = {
        {"data", bad, good + 100, 0}, {"half of the data", bad - 4, good + 100, 0},
        {"control", good, bad, 0}, {"name", good, good + 100, bad}, {"nothing", good, good + 100, 0},
    };
    for (int i = 0; i < 5; i++) {
        int ends[2];
        socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, ends);
        send_file(ends[1], 0);
        struct iovec to = {rows[i].data, 8}, again = {good, 8};
        struct msghdr header = {.msg_iov = &to, .msg_iovlen = 1, .msg_control = rows[i].control, .msg_controllen = 64,
                                .msg_name = rows[i].name, .msg_namelen = 100};
        int before = count_open();
        printf("type %d, %s\n", type, rows[i].what);
        SHOW(recvmsg(ends[0], &header, 0));
        SHOW(header.msg_controllen);
        SHOW(header.msg_flags);
        SHOW(count_open() - before);
        header.msg_iov = &again, header.msg_control = good + 100, header.msg_controllen = 64, header.msg_name = 0;
        before = count_open();
        SHOW(recvmsg(ends[0], &header, 0));
        SHOW(count_open() - before);
        close(ends[0]), close(ends[1]);
    }
}

static void many(int fd) {
    struct iovec one = {good, 8}, two = {bad, 8}, three = {good + 8, 8};
    struct mmsghdr headers[] = {{{0, 0, &one, 1}}, {{0, 0, &two, 1}}, {{0, 0, &three, 1}}};
    SHOW(recvmmsg(fd, headers, 3, 0, 0));
    SHOW(headers[0].msg_len);
    SHOW(recvmmsg(fd, headers + 2, 1, 0, 0));
    SHOW(recvmmsg(fd, (void *)bad, 1, 0, 0));
    close(fd), close(other);
}

static void names(void) {
    struct sockaddr_un name;
    socklen_t size = sizeof name;
    int fd = datagram();
    SHOW(recvfrom(fd, good, 8, 0, (void *)bad, &size));
    SHOW(recvfrom(fd, good, 8, 0, (void *)&name, (void *)bad));
    SHOW(recvfrom(fd, good, 8, 0, (void *)&name, &size));
    close(fd), close(other);
}

int main(void) {
    setvbuf(stdout, 0, _IOLBF, 1 << 16);
    good = mmap(0, MOST + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bad = good + MOST;
    mprotect(bad, PAGE, PROT_NONE);
    readonly = mmap(0, MOST, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    prctl(PR_SET_NAME, "destinations");
    sprintf(directory, "/tmp/destinations-XXXXXX");
    if (!mkdtemp(directory)) return 1;
    struct { const char *name; int (*make)(void); Read *by; long size; int readable, vectors; } rows[] = {
        {"pipe", one_write, by_read, 8, 1, 1},
        {"pipe of two writes", two_writes, by_read, 8, 1, 1},
        {"pipe of pages", pages, by_read, 3 * PAGE, 1, 1},
        {"pipe of uneven pages", uneven_pages, by_read, 10000, 1, 1},
        {"pipe of a merged page", merged, by_read, 4102, 1, 1},
        {"pipe to vmsplice", one_write, by_vmsplice, 8, 1, 1},
        {"stream", stream, by_read, 8, 1, 1},
        {"stream of two sends", two_sends, by_read, 8, 1, 1},
        {"long stream", long_stream, by_read, 80000, 1, 1},
        {"stream, recv", two_sends, by_recv, 8, 1, 0},
        {"stream, recvmsg", two_sends, by_recvmsg, 8, 1, 1},
        {"stream, peek", two_sends, by_peek, 8, 1, 1},
        {"stream, waitall", two_sends, by_waitall, 8, 1, 1},
        {"datagram", datagram, by_read, 8, 1, 1},
        {"datagram, recvmsg", datagram, by_recvmsg, 8, 1, 1},
        {"datagram, peek", datagram, by_peek, 8, 1, 1},
        {"packets", packets, by_recvmsg, 8, 1, 1},
        {"tcp", tcp, by_read, 8, 1, 1},
        {"tcp, recvmsg", tcp, by_recvmsg, 8, 1, 1},
        {"udp", udp, by_read, 8, 1, 1},
        {"udp, recvmsg", udp, by_recvmsg, 8, 1, 1},
        {"udp, peek", udp, by_peek, 8, 1, 1},
        {"eventfd", counter, by_read, 8, 1, 1},
        {"eventfd, semaphore", semaphore, by_read, 8, 0, 1},
        {"timerfd", timer, by_timer, 8, 0, 0},
        {"signalfd", signals, by_read, 256, 0, 0},
        {"inotify", notices, by_read, 64, 0, 1},
        {"terminal", typed, by_read, 80, 1, 1},
        {"terminal, long", typed, by_read, 200, 1, 1},
        {"terminal, raw", raw, by_read, 100, 1, 1},
        {"terminal, master", shown, by_read, 87, 1, 1},
        {"zero", zero, by_read, 3 * PAGE, 0, 1},
        {"zero, pread", zero, by_pread, 3 * PAGE, 0, 1},
        {"null", null, by_read, 8, 1, 1},
        {"full", full, by_read, 8, 0, 1},
        {"urandom", randoms, by_read, 100, 0, 1},
        {"getrandom", randoms, by_getrandom, 100, 0, 0},
        {"regular", regular, by_read, 10000, 1, 1},
        {"regular, pread", regular, by_pread, 10000, 1, 1},
        {"unlinked", unlinked, by_read, 10000, 1, 1},
        {"memfd", memory_file, by_read, 10000, 1, 1},
        {"memfd, pread", memory_file, by_pread, 10000, 1, 1},
        {"directory", a_directory, by_read, 8, 0, 1},
        {"directory, getdents", a_directory, by_getdents, 50, 0, 0},
        {"comm", comm, by_read, 12, 1, 1},
        {"comm, pread", comm, by_pread, 12, 1, 1},
        {"filesystems", filesystems, by_read, 8, 0, 1},
        {"sysfs", sys_file, by_read, 2, 0, 1},
        {"pagemap", pagemap, by_read, 64, 0, 1},
        {"own memory", own_memory, by_read, 3 * PAGE, 1, 1},
        {"message queue's file", queue, by_read, 80, 0, 1},
        {"message queue", queue, by_mq_receive, 8, 1, 0},
        {"write-only", write_only, by_read, 8, 0, 1},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        kind(rows[i].name, rows[i].make, rows[i].by, rows[i].size, rows[i].readable, rows[i].vectors);
    epolls();
    system_v();
    files(SOCK_STREAM);
    files(SOCK_SEQPACKET);
    many(datagram());
    many(stream());
    names();
    rmdir(directory);
    return 0;
}
