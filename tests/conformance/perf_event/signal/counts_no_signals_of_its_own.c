// What an event does to wake its reader is no occurrence of it: SIGIO for a signal that it counts is not counted.
#include "../behaviour.h"

static volatile int told_of_it;

static void count_told(int number) { (void)number, told_of_it++; }

BEHAVIOUR(counts_no_signals_of_its_own, TRACEFS | A_MACHINE) {
    Attr attr = attr_of(PERF_TYPE_TRACEPOINT, number_in("/sys/kernel/tracing/events/signal/signal_generate/id"));
    attr.exclude_kernel = 0;
    attr.sample_period = attr.wakeup_events = 1;
    signal(SIGIO, count_told);
    signal(SIGUSR1, SIG_IGN);
    int event = open_event(attr);
    CHECK(map(event, 1) != MAP_FAILED);
    SUCCEEDS(fcntl(event, F_SETOWN, getpid()));
    SUCCEEDS(fcntl(event, F_SETFL, O_RDWR | O_ASYNC));
    enable(event);
    raise(SIGUSR1);
    disable(event);
    EQUAL(count_of(event), 1);
    EQUAL(told_of_it, 1);
}
