// poll(2) sleeps until another task's sample wakes it up.
#include "../behaviour.h"

static void sleep_and_fault(void) {
    sleep_ms(20);
    fault(1);
    sleep_ms(20);
}

BEHAVIOUR(poll_sleeps, NOTHING) {
    struct child child = start(sleep_and_fault);
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.wakeup_events = 1;
    attr.disabled = 0;
    int event = open_of(attr, child.pid, -1, -1);
    CHECK(map(event, 1) != MAP_FAILED);
    let_go(child);
    struct pollfd polled = {event, POLLIN, 0};
    EQUAL(poll(&polled, 1, 10000), 1);
    EQUAL(polled.revents & POLLIN, POLLIN);
    EQUAL(wait_for(child.pid), 0);
}
