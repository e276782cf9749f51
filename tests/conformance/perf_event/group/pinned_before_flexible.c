// A pinned event always counts, however many others take turns.
#include "../behaviour.h"

BEHAVIOUR(pinned_before_flexible, PMU) {
    enum { EVENTS = 40 };
    for (int i = 0; i < EVENTS; i++) enable(open_event(INSTRUCTIONS));
    Attr attr = INSTRUCTIONS;
    attr.pinned = 1;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    int event = open_event(attr);
    enable(event);
    for (int i = 0; i < 30; i++) million();
    disable(event);
    uint64_t values[3];
    EQUAL(read(event, values, sizeof values), 24);
    COMPARE(values[0], >=, 30000000);
    COMPARE(values[0], <, 30100000);
    EQUAL(values[1], values[2]);
}
