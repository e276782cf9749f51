/* Writes whose bytes cannot all be read: how many are written, and what is found then. */
#include "show.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { PAGE = 4096, MOST = 1 << 17 };

static char *good, *bad;
static int reader;

static volatile int signals;
static void on_signal(int number) { signals += number == SIGPIPE; }
static int null_reader(void) { return open("/dev/null", O_RDONLY); }
static int ends(int one, int other) { return reader = one, other; }
static int empty_pipe(void) {
    int both[2];
    pipe2(both, O_NONBLOCK);
    return ends(both[0], both[1]);
}
static int used_pipe(void) {
    int end = empty_pipe();
    write(end, "0123", 4);
    return end;
}
static int pair(int type) {
    int both[2];
    socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, both);
    return ends(both[0], both[1]);
}
static int stream(void) { return pair(SOCK_STREAM); }
static int datagram(void) { return pair(SOCK_DGRAM); }
static int packets(void) { return pair(SOCK_SEQPACKET); }
static int same(int fd) { return reader = fd, fd; }
static int unread(int end) { return close(reader), reader = null_reader(), end; }
static int unread_pipe(void) { return unread(empty_pipe()); }
static int unread_stream(void) { return unread(stream()); }
static int unread_packets(void) { return unread(packets()); }
static int unread_datagram(void) { return unread(datagram()); }
static int shut_stream(void) {
    int end = stream();
    shutdown(end, SHUT_WR);
    return end;
}
static int counter(void) { return same(eventfd(0, EFD_NONBLOCK)); }
static int null(void) { return same(open("/dev/null", O_RDWR)); }
static int full(void) { return same(open("/dev/full", O_RDWR)); }
static int memory_file(void) { return same(memfd_create("of", 0)); }
static int unlinked(void) { return same(open("/tmp", O_TMPFILE | O_RDWR, 0600)); }

static void try(const char *kind, const char *what, int (*make)(void), struct iovec *from, int count) {
    static char found[MOST];
    int fd = make();
    errno = 0;
    long done = count == 1 ? write(fd, from->iov_base, from->iov_len) : writev(fd, from, count);
    printf("%s, %s: %ld%s%s", kind, what, done, done < 0 ? " " : "", done < 0 ? strerror(errno) : "");
    lseek(reader, 0, SEEK_SET);
    errno = 0;
    done = read(reader, found, sizeof found);
    printf(", then %ld%s%s", done, done < 0 ? " " : "", done < 0 ? strerror(errno) : "");
    if (done > 0) printf(" %.4s", found);
    if (signals) printf(", %d times SIGPIPE", signals);
    signals = 0;
    putchar('\n');
    close(fd);
    if (reader != fd) close(reader);
}

static void kind(const char *name, int (*make)(void), long size) {
    long half = size / 2;
#define TRY(what, ...) do { struct iovec from[] = {__VA_ARGS__}; \
        try(name, what, make, from, sizeof from / sizeof *from); } while (0)
    TRY("good", {good, size});
    TRY("bad", {bad, size});
    TRY("of the kernel", {(char *)-4096L, size});
    TRY("half", {bad - half, size});
    TRY("all but one", {bad - size + 1, size});
    TRY("no bytes", {bad, 0});
    TRY("bad, good", {bad, half}, {good, half});
    TRY("good, bad", {good, half}, {bad, half});
    TRY("good, of the kernel", {good, half}, {(char *)-4096L, half});
    TRY("empty bad, good", {bad, 0}, {good, size});
}

int main(void) {
    setvbuf(stdout, 0, _IOLBF, 1 << 16);
    signal(SIGPIPE, on_signal);
    good = mmap(0, MOST + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bad = good + MOST;
    mprotect(bad, PAGE, PROT_NONE);
    for (int i = 0; i < MOST; i++) good[i] = 'a' + i % 26;
    kind("pipe", empty_pipe, 8);
    kind("pipe, pages", empty_pipe, 3 * PAGE);
    kind("pipe, uneven", empty_pipe, 10000);
    kind("used pipe", used_pipe, 8);
    kind("used pipe, uneven", used_pipe, 10000);
    kind("stream", stream, 8);
    kind("long stream", stream, 80000);
    kind("datagram", datagram, 8);
    kind("packets", packets, 8);
    kind("unread pipe", unread_pipe, 8);
    kind("unread stream", unread_stream, 8);
    kind("unread packets", unread_packets, 8);
    kind("unread datagram", unread_datagram, 8);
    kind("stream that is shut", shut_stream, 8);
    kind("memfd", memory_file, 10000);
    kind("unlinked", unlinked, 10000);
    kind("null", null, 10000);
    memset(good, 0, MOST);
    kind("full", full, 8);
    kind("eventfd", counter, 8);
    return 0;
}
