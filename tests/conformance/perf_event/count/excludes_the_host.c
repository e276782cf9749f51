// attr.exclude_host leaves only guests' instructions, of which there are none: it opens, runs, and counts nothing.
#include "../behaviour.h"

BEHAVIOUR(excludes_the_host, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.exclude_host = 1;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    int event = open_event(attr);
    enable(event);
    million();
    disable(event);
    uint64_t values[3];
    EQUAL(read(event, values, sizeof values), sizeof values);
    EQUAL(values[0], 0);
    EQUAL(values[1], values[2]);
    COMPARE(values[1], >, 0);
}
