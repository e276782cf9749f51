/* Writes that nobody reads any more: which error, and whether SIGPIPE comes with it. */
#include "show.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { LONG = 400000 };

static char *good, *bad;
static int reader, writer;

static volatile int signals, of_user, of_this_process;
static void on_signal(int number, siginfo_t* info, void* context) {
    signals++, of_user = info->si_code == SI_USER, of_this_process = info->si_pid == getpid();
}

/* A call, its result, and the signals that it brought. */
#define TRY(name, expression)                                                                    \
    do {                                                                                         \
        errno = signals = 0;                                                                     \
        long result = (long)(expression);                                                        \
        printf("%s, %s: %ld %s", name, #expression, result, result < 0 ? strerror(errno) : "");  \
        if (signals) printf(", %d SIGPIPE, code %d, pid %d", signals, of_user, of_this_process); \
        putchar('\n');                                                                           \
    } while (0)

static void ends(int* both) { reader = both[0], writer = both[1]; }
static void pipes(void) {
    int both[2];
    pipe2(both, O_NONBLOCK);
    ends(both);
}
static void pair(int type) {
    int both[2];
    socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, both);
    ends(both);
}
static void stream(void) { pair(SOCK_STREAM); }
static void packets(void) { pair(SOCK_SEQPACKET); }
static void datagram(void) { pair(SOCK_DGRAM); }
static void loopback(int type) {
    struct sockaddr_in name = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof name;
    int server = socket(AF_INET, type, 0);
    writer = socket(AF_INET, type, 0), reader = server;
    bind(server, (void*)&name, size);
    getsockname(server, (void*)&name, &size);
    if (type == SOCK_STREAM) listen(server, 1);
    connect(writer, (void*)&name, size);
    if (type == SOCK_STREAM) reader = accept(server, 0, 0), close(server);
    fcntl(writer, F_SETFL, O_NONBLOCK), fcntl(reader, F_SETFL, O_NONBLOCK);
}
static void tcp(void) { loopback(SOCK_STREAM); }
static void udp(void) { loopback(SOCK_DGRAM); }

static int is_socket(void) {
    struct stat of;
    fstat(writer, &of);
    return S_ISSOCK(of.st_mode);
}

/* Every call that writes. */
static void writes(const char* name) {
    struct iovec two[] = {{good, 3}, {good, 5}}, none[] = {{good, 0}};
    struct mmsghdr headers[] = {{{.msg_iov = two, .msg_iovlen = 2}}, {{.msg_iov = two, .msg_iovlen = 1}}};
    TRY(name, write(writer, good, 5));
    TRY(name, write(writer, good, 0));
    TRY(name, writev(writer, two, 2));
    TRY(name, writev(writer, none, 1));
    TRY(name, pwritev2(writer, two, 2, -1, 0));
    TRY(name, pwrite(writer, good, 5, 0));
    if (!is_socket()) return;
    TRY(name, send(writer, good, 5, 0));
    TRY(name, send(writer, good, 0, 0));
    TRY(name, send(writer, good, 5, MSG_NOSIGNAL));
    TRY(name, sendmsg(writer, &headers->msg_hdr, 0));
    TRY(name, sendmsg(writer, &headers->msg_hdr, MSG_NOSIGNAL));
    TRY(name, sendmmsg(writer, headers, 2, 0));
    TRY(name, sendmmsg(writer, headers, 2, MSG_NOSIGNAL));
}

/* ... and every one that copies; `source` is what they copy from. */
static void copies(const char* name) {
    int full[2], file = memfd_create("source", 0);
    pipe(full);
    write(full[1], "0123456789", 10), write(file, good, 10);
    off_t start = 0;
    struct iovec some = {good, 5};
    TRY(name, sendfile(writer, file, &start, 5));
    TRY(name, start);
    lseek(file, 2, SEEK_SET);
    TRY(name, sendfile(writer, file, 0, 5));
    TRY(name, lseek(file, 0, SEEK_CUR));
    TRY(name, splice(full[0], 0, writer, 0, 5, 0));
    if (!is_socket()) {
        TRY(name, splice(file, 0, writer, 0, 5, 0));
        TRY(name, lseek(file, 0, SEEK_CUR));
        TRY(name, tee(full[0], writer, 5, 0));
        TRY(name, vmsplice(writer, &some, 1, 0));
        TRY(name, splice(full[0], 0, writer, 0, 0, 0));
        TRY(name, vmsplice(writer, &some, 0, 0));
    }
    TRY(name, read(full[0], good + 100, 10));
    close(full[0]), close(full[1]), close(file);
}

static void bad_first(const char* name) {
    struct iovec half[] = {{good, 3}, {bad, 5}};
    TRY(name, write(writer, bad, 5));
    TRY(name, write(writer, bad, 0));
    TRY(name, writev(writer, half, 2));
    if (is_socket()) TRY(name, send(writer, bad, 5, 0));
}

/* The ways in which there is no reader, for each kind that may have none. */
static void kind(const char* name, void (*make)(void), void (*calls)(const char*)) {
    static const struct {
        const char* what;
        int ours, how;
    } shuts[] = {
        {"shut for writing", 1, SHUT_WR}, {"peer shut for reading", 0, SHUT_RD}, {"peer shut for writing", 0, SHUT_WR},
        {"peer shut", 0, SHUT_RDWR},      {"shut for reading", 1, SHUT_RD},
    };
    char text[100];
    make(), close(reader);
    sprintf(text, "%s, closed", name);
    calls(text), close(writer);
    make(), write(writer, "0", 1), close(reader);
    sprintf(text, "%s, closed unread", name);
    calls(text);
    if (!is_socket()) {
        close(writer);
        return;
    }
    close(writer);
    for (unsigned i = 0; i < sizeof shuts / sizeof *shuts; i++) {
        make();
        shutdown(shuts[i].ours ? writer : reader, shuts[i].how);
        sprintf(text, "%s, %s", name, shuts[i].what);
        calls(text), close(writer), close(reader);
    }
}

static void never_connected(void) {
    static const struct {
        const char* name;
        int family, type;
    } rows[] = {
        {"stream", AF_UNIX, SOCK_STREAM}, {"packets", AF_UNIX, SOCK_SEQPACKET}, {"datagram", AF_UNIX, SOCK_DGRAM},
        {"tcp", AF_INET, SOCK_STREAM},    {"udp", AF_INET, SOCK_DGRAM},
    };
    struct sockaddr own = {AF_UNIX};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[100];
        writer = socket(rows[i].family, rows[i].type, 0);
        sprintf(text, "%s, not connected", rows[i].name);
        writes(text);
        if (rows[i].type != SOCK_DGRAM) bad_first(text);
        if (rows[i].family == AF_UNIX) bind(writer, &own, sizeof own.sa_family);
        sprintf(text, "%s, listening", rows[i].name);
        TRY(text, listen(writer, 1));
        TRY(text, write(writer, good, 5));
        close(writer);
    }
}

/* What was sent and not read is an error for who sent it, once. */
static void unread(const char* name, void (*make)(void), int reads_first) {
    make(), write(writer, "0", 1), close(reader);
    if (reads_first) TRY(name, read(writer, good, 5));
    for (int again = 0; again < 3; again++) {
        TRY(name, write(writer, good, 5));
        TRY(name, read(writer, good, 5));
    }
    close(writer);
}

/* A closed peer is a peer no more, and what it had sent is lost. */
static void forgotten_peer(void) {
    struct sockaddr_un name;
    socklen_t size = sizeof name;
    datagram(), write(reader, "0", 1), write(reader, "1", 1);
    TRY("forgotten peer", read(writer, good, 1));
    close(reader);
    TRY("forgotten peer", getpeername(writer, (void*)&name, &size));
    TRY("forgotten peer", send(writer, good, 300000, 0));
    TRY("forgotten peer", send(writer, good, 5, 0));
    TRY("forgotten peer", getpeername(writer, (void*)&name, &size));
    TRY("forgotten peer", read(writer, good, 1));
    TRY("forgotten peer", send(writer, good, 5, 0));
    TRY("forgotten peer", shutdown(writer, SHUT_WR));
    close(writer);
    packets(), close(reader);
    TRY("closed peer", getpeername(writer, (void*)&name, &size));
    TRY("closed peer", send(writer, good, 300000, 0));
    TRY("closed peer", send(writer, good, 300000, MSG_NOSIGNAL));
    TRY("closed peer", sendto(writer, good, 5, 0, (void*)&name, sizeof name));
    close(writer);
    stream(), close(reader);
    name.sun_family = AF_UNIX, strcpy(name.sun_path, "nobody");
    TRY("closed peer", sendto(writer, good, 5, 0, (void*)&name, sizeof name));
    TRY("closed peer", send(writer, good, LONG, 0));
    close(writer);
}

/* What a shutdown, a disconnection and a reset leave for later writes. */
static void ended(void) {
    static const struct {
        const char* name;
        int type;
    } rows[] = {
        {"fresh stream", SOCK_STREAM},
        {"fresh packets", SOCK_SEQPACKET},
        {"fresh datagram", SOCK_DGRAM},
    };
    struct sockaddr none = {AF_UNSPEC};
    struct sockaddr_in port = {AF_INET, htons(9), {htonl(INADDR_LOOPBACK)}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        writer = socket(AF_UNIX, rows[i].type, 0);
        TRY(rows[i].name, shutdown(writer, SHUT_WR));
        TRY(rows[i].name, write(writer, good, 5));
        TRY(rows[i].name, shutdown(writer, SHUT_RDWR));
        TRY(rows[i].name, read(writer, good, 5));
        close(writer);
    }
    struct sockaddr_un name = {AF_UNIX};
    socklen_t size = sizeof name;
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    bind(server, (void*)&name, sizeof name.sun_family), listen(server, 1);
    getsockname(server, (void*)&name, &size);
    reader = socket(AF_UNIX, SOCK_STREAM, 0);
    TRY("shut, then connected", shutdown(reader, SHUT_RDWR));
    TRY("shut, then connected", connect(reader, (void*)&name, size));
    writer = accept(server, 0, 0);
    TRY("shut, then connected", write(writer, good, 5));
    TRY("shut, then connected", write(writer, good, 5));
    TRY("shut, then connected", write(reader, good, 5));
    TRY("shut, then connected", read(reader, good, 5));
    close(server), close(reader), close(writer);
    writer = socket(AF_INET, SOCK_DGRAM, 0);
    TRY("fresh udp", shutdown(writer, SHUT_WR));
    TRY("fresh udp", sendto(writer, good, 5, 0, (void*)&port, sizeof port));
    close(writer);
    datagram(), write(reader, "0", 1);
    TRY("disconnected", connect(writer, &none, sizeof none));
    TRY("disconnected", read(writer, good, 5));
    TRY("disconnected", write(writer, good, 5));
    TRY("disconnected by the peer", write(reader, good, 5));
    TRY("disconnected by the peer", write(reader, good, 5));
    TRY("disconnected", read(writer, good, 5));
    close(reader), close(writer);
    tcp(), shutdown(reader, SHUT_RDWR);
    TRY("shut tcp", write(writer, good, 5));
    TRY("shut tcp, its peer", read(reader, good, 5));
    TRY("shut tcp, its peer", read(reader, good, 5));
    TRY("shut tcp, its peer", write(reader, good, 5));
    TRY("shut tcp", read(writer, good, 5));
    TRY("shut tcp", read(writer, good, 5));
    TRY("shut tcp", write(writer, good, 5));
    close(reader), close(writer);
    struct iovec some = {good, 5};
    struct mmsghdr headers[] = {{{.msg_iov = &some, .msg_iovlen = 1}}, {{.msg_iov = &some, .msg_iovlen = 1}}};
    for (int flags = 0; flags <= MSG_NOSIGNAL; flags += MSG_NOSIGNAL) {
        tcp(), close(reader);
        TRY("reset between messages", sendmmsg(writer, headers, 2, flags));
        TRY("reset between messages", sendmmsg(writer, headers, 2, flags));
        close(writer);
    }
}

/* The reader goes while the writer waits: a part has been written. */
static void interrupted(const char* name, void (*make)(void), long (*by)(int, const char*, long), int enough) {
    make();
    fcntl(writer, F_SETFL, 0);
    if (!fork()) {
        int there = 0;
        close(writer);
        while (there < enough) usleep(1000), ioctl(reader, FIONREAD, &there);
        usleep(1000);
        _exit(0);
    }
    close(reader), errno = signals = 0;
    long done = by(writer, good, LONG);
    printf("%s: %s %s, %d SIGPIPE\n", name, done > 0 ? "a part" : "nothing", done < 0 ? strerror(errno) : "", signals);
    wait(0);
    close(writer);
}
static long by_write(int fd, const char* from, long size) { return write(fd, from, size); }
static long by_writev(int fd, const char* from, long size) {
    struct iovec halves[] = {{(char*)from, size / 2}, {(char*)from + size / 2, size / 2}};
    return writev(fd, halves, 2);
}
static long by_send(int fd, const char* from, long size) { return send(fd, from, size, 0); }
static long by_sendfile(int fd, const char* from, long size) {
    int file = memfd_create("source", 0);
    write(file, from, size);
    off_t start = 0;
    long done = sendfile(fd, file, &start, size);
    close(file);
    return done;
}

/* ... or before anything has. */
static void until_asleep(int process) {
    char path[40], line[100] = "", *state = line;
    sprintf(path, "/proc/%d/stat", process);
    while (*state != 'S') {
        int file = open(path, O_RDONLY);
        usleep(1000);
        read(file, line, sizeof line - 1), close(file);
        state = strrchr(line, ')') + 2;
    }
}
static void waiting(const char* name, void (*make)(void), int shuts) {
    int process = getpid();
    make();
    while (write(writer, good, 1000) > 0) {
    }
    fcntl(writer, F_SETFL, 0);
    if (!fork()) {
        close(writer);
        until_asleep(process);
        if (shuts) shutdown(reader, SHUT_RD);
        _exit(0);
    }
    if (!shuts) close(reader);
    TRY(name, write(writer, good, 1000));
    wait(0);
    TRY(name, write(writer, good, 1000));
    if (shuts) close(reader);
    close(writer);
}

/* No handler: the signal ends the process. */
static void fatal(const char* name, void (*make)(void)) {
    int status;
    fflush(stdout);
    make(), close(reader);
    if (!fork()) {
        signal(SIGPIPE, SIG_DFL);
        write(writer, good, 5);
        _exit(3);
    }
    wait(&status);
    printf("%s: %s %d\n", name, WIFSIGNALED(status) ? "signal" : "exit",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    close(writer);
}

int main(void) {
    setvbuf(stdout, 0, _IOLBF, 1 << 16);
    sigaction(SIGPIPE, &(struct sigaction){.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART}, 0);
    good = mmap(0, 2 * LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bad = mmap(0, LONG, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(good, 'a', LONG);
    static const struct {
        const char* name;
        void (*make)(void);
    } rows[] = {
        {"pipe", pipes}, {"stream", stream}, {"packets", packets}, {"datagram", datagram}, {"tcp", tcp}, {"udp", udp},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        kind(rows[i].name, rows[i].make, writes);
        kind(rows[i].name, rows[i].make, bad_first);
        kind(rows[i].name, rows[i].make, copies);
        fatal(rows[i].name, rows[i].make);
        unread(rows[i].name, rows[i].make, 0), unread(rows[i].name, rows[i].make, 1);
    }
    for (unsigned i = 0; i < 5; i++) waiting(rows[i].name, rows[i].make, 0);  // but UDP, which does not wait
    waiting("stream, shut", stream, 1), waiting("packets, shut", packets, 1);
    never_connected();
    forgotten_peer();
    ended();
    static const struct {
        const char* name;
        void (*make)(void);
        long (*by)(int, const char*, long);
        int enough;
    } waits[] = {
        {"pipe by write", pipes, by_write, 65536},          {"pipe by writev", pipes, by_writev, 65536},
        {"stream by write", stream, by_write, 65536},       {"stream by writev", stream, by_writev, 65536},
        {"pipe by sendfile", pipes, by_sendfile, 65536},    {"stream by send", stream, by_send, 65536},
        {"stream by sendfile", stream, by_sendfile, 30000},
    };
    for (unsigned i = 0; i < sizeof waits / sizeof *waits; i++)
        interrupted(waits[i].name, waits[i].make, waits[i].by, waits[i].enough);
    return 0;
}
