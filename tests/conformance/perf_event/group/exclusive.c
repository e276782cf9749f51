// An exclusive event has the PMU alone: beside others that came first it waits, and after them it counts.
#include "../behaviour.h"

BEHAVIOUR(exclusive, PMU) {
    Attr attr = INSTRUCTIONS;
    int other = open_event(attr);
    enable(other);
    attr.exclusive = 1;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    int event = open_event(attr);
    enable(event);
    loops(100);
    uint64_t values[3];
    EQUAL(read(event, values, sizeof values), 24);
    EQUAL(values[0], 0);
    COMPARE(values[1], >, 0);
    EQUAL(values[2], 0);
    disable(event);
    close(other);
    uint64_t waited = values[1];
    EQUAL(read(event, values, sizeof values), 24);
    COMPARE(values[1], >=, waited);
    waited = values[1] - values[2];
    enable(event);
    million();
    disable(event);
    EQUAL(read(event, values, sizeof values), 24);
    COMPARE(values[0], >=, 1000000);
    EQUAL(values[1] - values[2], waited);
}
