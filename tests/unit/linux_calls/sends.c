/* Messages whose bytes cannot all be read: what is sent, and what arrives. */
#include "show.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

enum { PAGE = 4096, MOST = 1 << 17 };

static char *good, *bad;
static int reader;

static int pair(int type) {
    int both[2];
    socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, both);
    return reader = both[0], both[1];
}
static int stream(void) { return pair(SOCK_STREAM); }
static int datagram(void) { return pair(SOCK_DGRAM); }
static int packets(void) { return pair(SOCK_SEQPACKET); }

static int loopback(int type) {
    struct sockaddr_in name = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof name;
    int server = socket(AF_INET, type, 0), sender = socket(AF_INET, type, 0);
    reader = server;
    bind(server, (void*)&name, size);
    getsockname(server, (void*)&name, &size);
    if (type == SOCK_STREAM) listen(server, 1);
    connect(sender, (void*)&name, size);
    if (type == SOCK_STREAM) reader = accept(server, 0, 0), close(server);
    fcntl(sender, F_SETFL, O_NONBLOCK), fcntl(reader, F_SETFL, O_NONBLOCK);
    return sender;
}
static int tcp(void) { return loopback(SOCK_STREAM); }
static int udp(void) { return loopback(SOCK_DGRAM); }

typedef long Send(int fd, struct iovec* from, int count);

static long by_sendto(int fd, struct iovec* from, int count) {
    return count == 1 ? sendto(fd, from->iov_base, from->iov_len, 0, 0, 0) : -1;
}
static long by_sendmsg(int fd, struct iovec* from, int count) {
    struct msghdr header = {.msg_iov = from, .msg_iovlen = count};
    return sendmsg(fd, &header, 0);
}
static long by_sendmmsg(int fd, struct iovec* from, int count) {
    struct iovec whole = {good, 3};
    struct mmsghdr headers[] = {{{.msg_iov = &whole, .msg_iovlen = 1}}, {{.msg_iov = from, .msg_iovlen = count}}};
    long done = sendmmsg(fd, headers, 2, 0);
    printf("lengths %d %d ", headers[0].msg_len, headers[1].msg_len);
    return done;
}
static long by_writev(int fd, struct iovec* from, int count) { return writev(fd, from, count); }

static void try(const char* kind, const char* what, int (*make)(void), Send* by, struct iovec* from, int count) {
    static char found[MOST];
    int fd = make();
    errno = 0;
    long done = by(fd, from, count);
    printf("%s, %s: %ld%s%s", kind, what, done, done < 0 ? " " : "", done < 0 ? strerror(errno) : "");
    for (int again = 0; again < 2; again++) {
        errno = 0;
        done = recv(reader, found, sizeof found, 0);
        printf(", then %ld%s%s", done, done < 0 ? " " : "", done < 0 ? strerror(errno) : "");
        if (done > 0) printf(" %.*s", done < 8 ? (int)done : 8, found);
    }
    putchar('\n');
    close(fd), close(reader);
}

static void kind(const char* name, int (*make)(void), Send* by, long size, int vectors) {
    long half = size / 2;
#define TRY(what, ...)                                               \
    do {                                                             \
        struct iovec from[] = {__VA_ARGS__};                         \
        try(name, what, make, by, from, sizeof from / sizeof *from); \
    } while (0)
    TRY("good", {good, size});
    TRY("bad", {bad, size});
    TRY("of the kernel", {(char*)-4096L, size});
    TRY("half", {bad - half, size});
    TRY("all but one", {bad - size + 1, size});
    TRY("no bytes", {bad, 0});
    if (!vectors) return;
    TRY("bad, good", {bad, half}, {good, half});
    TRY("good, bad", {good, half}, {bad, half});
    TRY("good, of the kernel", {good, half}, {(char*)-4096L, half});
    TRY("empty bad, good", {bad, 0}, {good, size});
    TRY("good, half, good", {good, half}, {bad - half, size}, {good, half});
}

/* Besides the bytes: the header, its vector, its name, its control message. */
static void headers(void) {
    struct iovec to = {good, 8}, *split = (struct iovec*)bad - 1;
    struct sockaddr_un nobody = {AF_UNIX, "/nobody"};
    int fd = datagram();
    SHOW(sendmsg(fd, (void*)bad, 0));
    struct msghdr rows[] = {
        {.msg_iov = (void*)bad, .msg_iovlen = 1},
        {.msg_iov = split, .msg_iovlen = 2},
        {.msg_iov = &to, .msg_iovlen = 1, .msg_name = bad, .msg_namelen = 10},
        {.msg_iov = &to, .msg_iovlen = 1, .msg_control = bad, .msg_controllen = 24},
        {.msg_iov = (void*)bad, .msg_iovlen = 1, .msg_name = bad, .msg_namelen = 10},
        {.msg_iov = (void*)bad, .msg_iovlen = 1, .msg_control = bad, .msg_controllen = 24},
        {.msg_iov = (void*)bad, .msg_iovlen = 0},
    };
    *split = to;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) SHOW(sendmsg(fd, rows + i, 0));
    SHOW(sendto(fd, bad, 8, 0, (void*)bad, 10));
    SHOW(sendto(fd, bad, 8, 0, (void*)&nobody, sizeof nobody));
    SHOW(sendto(fd, good, 8, 0, (void*)&nobody, sizeof nobody));
    close(reader);
    SHOW(send(fd, bad, 8, MSG_NOSIGNAL));
    SHOW(send(fd, good, 8, MSG_NOSIGNAL));
    close(fd);
    fd = stream(), close(reader);
    SHOW(send(fd, bad, 8, MSG_NOSIGNAL));
    close(fd), fd = socket(AF_UNIX, SOCK_STREAM, 0);
    SHOW(send(fd, bad, 8, MSG_NOSIGNAL));
    close(fd), fd = socket(AF_INET, SOCK_DGRAM, 0);
    SHOW(send(fd, bad, 8, MSG_NOSIGNAL));
    close(fd), fd = socket(AF_INET, SOCK_STREAM, 0);
    SHOW(send(fd, bad, 8, MSG_NOSIGNAL));
    close(fd);
}

int main(void) {
    setvbuf(stdout, 0, _IOLBF, 1 << 16);
    good = mmap(0, MOST + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bad = good + MOST;
    mprotect(bad, PAGE, PROT_NONE);
    for (int i = 0; i < MOST; i++) good[i] = 'a' + i % 26;
    struct {
        const char* name;
        int (*make)(void);
        long size;
    } rows[] = {
        {"stream", stream, 8},     {"long stream", stream, 80000},
        {"datagram", datagram, 8}, {"long datagram", datagram, 40000},
        {"packets", packets, 8},   {"tcp", tcp, 8},
        {"long tcp", tcp, 30000},  {"udp", udp, 8},
        {"long udp", udp, 40000},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        kind(rows[i].name, rows[i].make, by_sendto, rows[i].size, 0);
        kind(rows[i].name, rows[i].make, by_sendmsg, rows[i].size, 1);
        kind(rows[i].name, rows[i].make, by_sendmmsg, rows[i].size, 1);
        kind(rows[i].name, rows[i].make, by_writev, rows[i].size, 1);
    }
    headers();
    return 0;
}
