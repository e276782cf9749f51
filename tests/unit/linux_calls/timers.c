// Timers as files, watched by their edges: who reads one or asks for its time lets it go on.
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { PERIODIC = 1, ARMED_BEFORE = 2, READS = 4, ASKS = 8 };

static void rounds(int how) {
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), instance = epoll_create1(0);
    struct itimerspec nanosecond = {{0, how & PERIODIC ? 1 : 0}, {0, 1}}, left;
    struct epoll_event interest = {.events = EPOLLIN | EPOLLET}, told;
    if (how & ARMED_BEFORE) timerfd_settime(timer, 0, &nanosecond, 0);
    epoll_ctl(instance, EPOLL_CTL_ADD, timer, &interest);
    if (!(how & ARMED_BEFORE)) timerfd_settime(timer, 0, &nanosecond, 0);
    for (int round = 0; round < 3; round++) {
        uint64_t passed = 0;
        printf("%d, round %d: %d ready", how, round, epoll_wait(instance, &told, 1, 50));
        if (how & READS) printf(", read %zd", read(timer, &passed, 8));
        printf(": %d", passed > 0);
        if (how & ASKS) timerfd_gettime(timer, &left);
        if (how & ASKS) printf(", every %ld ns", left.it_interval.tv_nsec);
        puts("");
    }
    close(timer);
    close(instance);
}

int main(void) {
    for (int how = 0; how < 16; how++) rounds(how);
}
