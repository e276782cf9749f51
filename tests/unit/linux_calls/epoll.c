/* The order in which an epoll instance tells what is ready: who comes first, who waits, and who comes again. */
#include "show.h"
#include <fcntl.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum { FILES = 5 };

static int poll, files[FILES];

static void control(int operation, int number, uint32_t events) {
    struct epoll_event event = {events, {.u64 = number}};
    if (epoll_ctl(poll, operation, files[number], &event)) perror("epoll_ctl");
}
static void watch_all(uint32_t events) {
    poll = epoll_create1(0);
    for (int i = 0; i < FILES; i++) files[i] = eventfd(0, EFD_NONBLOCK), control(EPOLL_CTL_ADD, i, events);
}
static void up(int number) { eventfd_write(files[number], 1); }
static void down(int number) {
    eventfd_t value;
    eventfd_read(files[number], &value);
}
static void told(const char* when, int room) {
    struct epoll_event events[FILES];
    int count = epoll_wait(poll, events, room, 0);
    printf("%s: %d:", when, count);
    for (int i = 0; i < count; i++) printf(" %d", (int)events[i].data.u64);
    putchar('\n');
}
static void end(void) {
    for (int i = 0; i < FILES; i++) close(files[i]);
    close(poll);
}

static void levels(void) {
    watch_all(EPOLLIN);
    told("none", FILES);
    up(3), up(1), up(4), up(1), up(0);
    for (int i = 0; i < 6; i++) told("rotating, 2", 2);
    for (int i = 0; i < 3; i++) told("rotating, 3", 3);
    for (int i = 0; i < 3; i++) told("all", FILES);
    down(1), told("one less", FILES);
    up(1), told("and again", FILES);
    down(4), up(4), told("down and up, 2", 2);
    told("down and up, rest", FILES);
    up(2), told("one more, 1", 1), told("one more", FILES);
    control(EPOLL_CTL_MOD, 3, EPOLLIN), told("modified", FILES);
    control(EPOLL_CTL_MOD, 3, EPOLLPRI), told("for other things", FILES);
    control(EPOLL_CTL_MOD, 3, EPOLLIN), told("and back", FILES);
    control(EPOLL_CTL_DEL, 0, 0), told("without one", FILES);
    control(EPOLL_CTL_ADD, 0, EPOLLIN), told("added, 2", 2), told("added", FILES);
    close(files[4]), told("closed", FILES);
    end();
}

static void edges(uint32_t how) {
    watch_all(EPOLLIN | how);
    up(2), up(0), up(4), up(3);
    told("2 of four", 2), up(2), told("2 more", 2), told("rest", FILES), told("none", FILES);
    up(3), up(2), up(1), down(2), told("one is over", FILES);
    control(EPOLL_CTL_MOD, 4, EPOLLIN | how), control(EPOLL_CTL_MOD, 0, EPOLLIN), up(3);
    told("modified", FILES), told("one for its level", FILES);
    end();
}

static void mixed(void) {
    watch_all(EPOLLIN);
    control(EPOLL_CTL_MOD, 1, EPOLLIN | EPOLLET), control(EPOLL_CTL_MOD, 3, EPOLLIN | EPOLLONESHOT);
    up(4), up(3), up(2), up(1), up(0);
    for (int i = 0; i < 4; i++) told("mixed, 2", 2);
    up(1), control(EPOLL_CTL_MOD, 3, EPOLLIN | EPOLLONESHOT);
    for (int i = 0; i < 4; i++) told("mixed, 3", 3);
    end();
}

static void nested(void) {
    watch_all(EPOLLIN);
    int inner = poll;
    poll = epoll_create1(0);
    struct epoll_event event = {EPOLLIN, {.u64 = 10}};
    int other = eventfd(0, 0);
    epoll_ctl(poll, EPOLL_CTL_ADD, inner, &event);
    event.data.u64 = 11, epoll_ctl(poll, EPOLL_CTL_ADD, other, &event);
    eventfd_write(other, 1), up(1), told("outer", 2), told("outer, 1", 1), told("outer, 1", 1);
    down(1), told("outer", 2), up(0), told("outer", 2);
    close(inner), told("outer", 2);
    close(poll), close(other), poll = -1;
    end();
}

static void pipes(void) {
    poll = epoll_create1(0);
    int ends[2], pairs[2];
    pipe2(ends, O_NONBLOCK), socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pairs);
    int all[] = {ends[0], ends[1], pairs[0], pairs[1], eventfd(0, EFD_NONBLOCK)};
    memcpy(files, all, sizeof files);
    control(EPOLL_CTL_ADD, 0, EPOLLIN), control(EPOLL_CTL_ADD, 1, EPOLLOUT), control(EPOLL_CTL_ADD, 2, EPOLLIN);
    control(EPOLL_CTL_ADD, 3, EPOLLIN), control(EPOLL_CTL_ADD, 4, EPOLLIN | EPOLLOUT);
    told("room to write", FILES);
    write(pairs[0], "a", 1), write(ends[1], "b", 1), write(pairs[1], "c", 1);
    for (int i = 0; i < 3; i++) told("two written, 2", 2);
    char byte;
    read(pairs[1], &byte, 1), read(ends[0], &byte, 1), told("read", FILES);
    write(ends[1], "b", 1), write(pairs[0], "a", 1), told("written", FILES);
    close(ends[1]), told("closed", FILES), told("closed", FILES);
    files[1] = -1;
    end();
}

/* What cannot be told keeps its place, and so do those behind it. */
static void faults(void) {
    char* page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(page + 4096, 4096, PROT_NONE);
    watch_all(EPOLLIN);
    up(3), up(1), up(4);
    struct epoll_event* room = (struct epoll_event*)(page + 4096) - 1;
    SHOW(epoll_wait(poll, room + 1, 4, 0));
    SHOW(epoll_wait(poll, room, 4, 0));
    SHOW(room->data.u64);
    SHOW(epoll_wait(poll, room, 4, 0));
    SHOW(room->data.u64);
    told("then", FILES);
    end();
}

int main(void) {
    levels();
    edges(EPOLLET);
    edges(EPOLLONESHOT);
    mixed();
    nested();
    pipes();
    faults();
    return 0;
}
