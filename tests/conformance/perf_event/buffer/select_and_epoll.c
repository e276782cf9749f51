// select(2) and epoll(7) say the same.
#include <sys/epoll.h>
#include <sys/select.h>

#include "../behaviour.h"

BEHAVIOUR(select_and_epoll, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.wakeup_events = 1;
    int event = open_event(attr);
    CHECK(map(event, 1) != MAP_FAILED);
    fd_set set;
    struct timeval none = {0, 0};
    FD_ZERO(&set);
    FD_SET(event, &set);
    EQUAL(select(event + 1, &set, NULL, NULL, &none), 0);
    enable(event);
    fault(1);
    FD_SET(event, &set);
    EQUAL(select(event + 1, &set, NULL, NULL, &none), 1);
    int epoll = epoll_create1(0);
    struct epoll_event wanted = {.events = EPOLLIN, .data.u64 = 7}, got;
    SUCCEEDS(epoll_ctl(epoll, EPOLL_CTL_ADD, event, &wanted));
    fault(1);
    EQUAL(epoll_wait(epoll, &got, 1, 0), 1);
    EQUAL(got.events, EPOLLIN);
    EQUAL(got.data.u64, 7);
}
