// A sibling overflows and signals as a leader does.
#include "../behaviour.h"

static volatile int sibling_overflows;

static void count_siblings(int number) { (void)number, sibling_overflows++; }

BEHAVIOUR(signals_of_a_sibling, PMU) {
    signal(SIGIO, count_siblings);
    Attr attr = INSTRUCTIONS;
    int leader = open_event(HARDWARE(CPU_CYCLES));
    attr.sample_period = 100000;
    attr.disabled = 0;
    int event = open_sibling(attr, leader);
    SUCCEEDS(fcntl(event, F_SETOWN, getpid()));
    SUCCEEDS(fcntl(event, F_SETFL, O_RDWR | O_ASYNC));
    enable(leader);
    for (int i = 0; i < 5; i++) million();
    disable(leader);
    COMPARE(count_of(event), >=, 5000000);
    EQUAL(sibling_overflows, count_of(event) / 100000);
}
