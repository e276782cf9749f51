// An event that need not wait: time_running is time_enabled.
#include "../behaviour.h"

BEHAVIOUR(times_alone, NOTHING) {
    Attr attr = DUMMY;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    int event = open_event(attr);
    uint64_t values[3];
    EQUAL(read(event, values, sizeof values), 24);
    EQUAL(values[1], 0);
    EQUAL(values[2], 0);
    enable(event);
    loops(100000);
    disable(event);
    EQUAL(read(event, values, sizeof values), 24);
    COMPARE(values[1], >, 0);
    EQUAL(values[1], values[2]);
}
