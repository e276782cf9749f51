// The times can be read without DISABLE, and grow.
#include "../behaviour.h"

BEHAVIOUR(times_while_it_counts, NOTHING) {
    Attr attr = DUMMY;
    attr.disabled = 0;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    int event = open_event(attr);
    uint64_t first[3], second[3];
    EQUAL(read(event, first, sizeof first), 24);
    loops(100000);
    EQUAL(read(event, second, sizeof second), 24);
    COMPARE(second[1], >, first[1]);
    EQUAL(second[1], second[2]);
}
