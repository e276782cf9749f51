// An overflow signals without a buffer, too.
#include "../behaviour.h"

static volatile int overflows;

static void count_overflow(int number) { (void)number, overflows++; }

BEHAVIOUR(without_a_buffer, PMU) {
    signal(SIGIO, count_overflow);
    Attr attr = INSTRUCTIONS;
    attr.sample_period = 100000;
    int event = open_event(attr);
    SUCCEEDS(fcntl(event, F_SETOWN, getpid()));
    SUCCEEDS(fcntl(event, F_SETFL, O_RDWR | O_ASYNC));
    enable(event);
    million();
    disable(event);
    EQUAL(overflows, 10);
}
