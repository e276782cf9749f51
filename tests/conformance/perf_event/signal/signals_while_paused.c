// An overflow signals though the buffer is paused and its sample goes nowhere.
#include "../behaviour.h"

static volatile int told_while_paused;

static void count_paused(int number) { (void)number, told_while_paused++; }

BEHAVIOUR(signals_while_paused, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = attr.wakeup_events = 1;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    signal(SIGIO, count_paused);
    raise(SIGIO);
    told_while_paused = 0;
    SUCCEEDS(fcntl(event, F_SETOWN, getpid()));
    SUCCEEDS(fcntl(event, F_SETFL, O_RDWR | O_ASYNC));
    SUCCEEDS(ioctl(event, PERF_EVENT_IOC_PAUSE_OUTPUT, 1));
    char* at = fresh(1);
    SUCCEEDS(ioctl(event, PERF_EVENT_IOC_REFRESH, 2));
    touch(at, 1);
    disable(event);
    EQUAL(told_while_paused, 1);
    CHECK(!next_record(ring));
}
