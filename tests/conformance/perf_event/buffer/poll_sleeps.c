// poll(2) sleeps until another task's sample wakes it up.
#include "../behaviour.h"

static void sleep_and_fault(void) {
    sleep_ms(20);
    fault(600);
    sleep_ms(20);
}

BEHAVIOUR(poll_sleeps, NOTHING) {
    struct child child = start(sleep_and_fault);
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.wakeup_events = 500;  // not those faults that a new process has by itself
    attr.disabled = 0;
    int event = open_of(attr, child.pid, -1, -1);
    CHECK(map(event, 8) != MAP_FAILED);
    struct pollfd polled = {event, POLLIN, 0};
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    let_go(child);
    EQUAL(poll(&polled, 1, 10000), 1);
    clock_gettime(CLOCK_MONOTONIC, &now);
    EQUAL(polled.revents, POLLIN);
    COMPARE((now.tv_sec - begun.tv_sec) * 1000000000 + now.tv_nsec - begun.tv_nsec, >=, 10000000);  // of 20 ms
    EQUAL(wait_for(child.pid), 0);
}
