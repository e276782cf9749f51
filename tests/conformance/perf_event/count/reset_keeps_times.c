// RESET leaves the times as they are.
#include "../behaviour.h"

BEHAVIOUR(reset_keeps_times, NOTHING) {
    Attr attr = SOFTWARE(TASK_CLOCK);
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    int event = open_event(attr);
    enable(event);
    loops(1000000);
    disable(event);
    uint64_t before[3], after[3];
    EQUAL(read(event, before, sizeof before), 24);
    reset(event);
    EQUAL(read(event, after, sizeof after), 24);
    COMPARE(before[0], >, 0);
    EQUAL(after[0], 0);
    EQUAL(after[1], before[1]);
    EQUAL(after[2], before[2]);
}
