// Without O_ASYNC, and without an owner, there is no signal.
#include "../behaviour.h"

static volatile int unwanted;

static void count_unwanted(int number) { (void)number, unwanted++; }

BEHAVIOUR(nobody_asked, NOTHING) {
    signal(SIGIO, count_unwanted);
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.wakeup_events = 1;
    int event = open_event(attr);
    CHECK(map(event, 1) != MAP_FAILED);
    enable(event);
    fault(3);
    SUCCEEDS(fcntl(event, F_SETOWN, getpid()));
    fault(3);
    SUCCEEDS(fcntl(event, F_SETOWN, 0));
    SUCCEEDS(fcntl(event, F_SETFL, O_RDWR | O_ASYNC));
    fault(3);
    EQUAL(unwanted, 0);
}
