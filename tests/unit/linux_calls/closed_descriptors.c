/* Descriptors that are closed while another thread's call works with them: the file stays open until the call ends. */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include "show.h"

static char data[100];
static atomic_int sleeper;
static int used;

static void close_while_it_sleeps(void) {
    char path[64], state = 'R';
    while (!sleeper);
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", sleeper);
    while (state != 'S') {
        FILE* stat = fopen(path, "r");
        if (!stat || fscanf(stat, "%*d %*s %c", &state) != 1) abort();
        fclose(stat);
    }
    close(used);
}

static long result;
static int why;

#define IN_A_THREAD(name, call)             \
    static void* name(void* nothing) {      \
        sleeper = (int)syscall(SYS_gettid); \
        errno = 0;                          \
        result = call;                      \
        why = errno;                        \
        return nothing;                     \
    }

#define CLOSED_DURING(name, descriptor, then)               \
    do {                                                    \
        pthread_t thread;                                   \
        used = descriptor;                                  \
        sleeper = 0;                                        \
        pthread_create(&thread, NULL, name, NULL);          \
        close_while_it_sleeps();                            \
        then;                                               \
        pthread_join(thread, NULL);                         \
        printf(#name " = %ld %s\n", result, strerror(why)); \
    } while (0)

static struct epoll_event event;
IN_A_THREAD(reads, read(used, data, 5))
IN_A_THREAD(receives, recv(used, data, 5, 0))
IN_A_THREAD(receives_all, recv(used, data, 10, MSG_WAITALL))
IN_A_THREAD(writes, write(used, data, 100))
IN_A_THREAD(sends, send(used, data, 100, 0))
IN_A_THREAD(accepts, accept(used, NULL, NULL) >= 0)
static struct pollfd watched;
static int poll_it(void) {
    watched = (struct pollfd){used, POLLIN, 0};
    return poll(&watched, 1, -1);
}
static int select_it(void) {
    fd_set readable;
    FD_ZERO(&readable);
    FD_SET(used, &readable);
    return select(used + 1, &readable, NULL, NULL, &(struct timeval){0, 200000});
}
IN_A_THREAD(polls, poll_it())
IN_A_THREAD(selects, select_it())
IN_A_THREAD(waits, epoll_wait(used, &event, 1, -1))

static void fill(int descriptor) {
    static char page[4096];
    send(descriptor, page, 1, MSG_DONTWAIT);
    while (send(descriptor, page, sizeof page, MSG_DONTWAIT) > 0);
}

static void drain(int descriptor) {
    static char page[4096];
    while (recv(descriptor, page, sizeof page, MSG_DONTWAIT) > 0);
}

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    int ends[2];
    pipe(ends);
    CLOSED_DURING(reads, ends[0], SHOW(write(ends[1], "hello", 5)));
    printf("%.5s\n", data);
    close(ends[1]);
    pipe(ends);
    CLOSED_DURING(reads, ends[0], SHOW(close(ends[1])));
    for (int kind = SOCK_STREAM; kind <= SOCK_DGRAM; kind++) {
        socketpair(AF_UNIX, kind, 0, ends);
        CLOSED_DURING(reads, ends[0], SHOW(send(ends[1], "abcde", 5, MSG_NOSIGNAL)));
        printf("%.5s\n", data);
        SHOW(send(ends[1], "abcde", 5, MSG_NOSIGNAL));
        close(ends[1]);
        socketpair(AF_UNIX, kind, 0, ends);
        CLOSED_DURING(receives, ends[0], SHOW(send(ends[1], "fghij", 5, MSG_NOSIGNAL)));
        printf("%.5s\n", data);
        close(ends[1]);
    }
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    CLOSED_DURING(receives_all, ends[0], SHOW(send(ends[1], "01234", 5, MSG_NOSIGNAL)); SHOW(close(ends[1])));
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    fill(ends[0]);
    CLOSED_DURING(writes, ends[0], drain(ends[1]));
    close(ends[1]);
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    fill(ends[0]);
    CLOSED_DURING(sends, ends[0], drain(ends[1]));
    close(ends[1]);

    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    bind(listener, (struct sockaddr*)&address, size);
    getsockname(listener, (struct sockaddr*)&address, &size);
    listen(listener, 1);
    CLOSED_DURING(accepts, listener, SHOW(connect(client, (struct sockaddr*)&address, size)));
    SHOW(connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr*)&address, size));

    pipe(ends);
    CLOSED_DURING(polls, ends[0], SHOW(write(ends[1], "hello", 5)));
    printf("%#x\n", watched.revents);
    SHOW(write(ends[1], "hello", 5));
    close(ends[1]);
    pipe(ends);
    CLOSED_DURING(selects, ends[0], SHOW(write(ends[1], "hello", 5)));
    SHOW(write(ends[1], "hello", 5));
    close(ends[1]);

    int counter = eventfd(0, 0), events = epoll_create1(0);
    event.events = EPOLLIN;
    epoll_ctl(events, EPOLL_CTL_ADD, counter, &event);
    CLOSED_DURING(waits, events, SHOW(write(counter, "\1\0\0\0\0\0\0\0", 8)));
    return 0;
}
