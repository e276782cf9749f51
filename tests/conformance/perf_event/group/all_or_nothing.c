// The members of a group count together: their times are equal, beside others that take turns with it.
#include "../behaviour.h"

BEHAVIOUR(all_or_nothing, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_GROUP;
    int leader = open_event(attr), others[30];
    attr.disabled = 0;
    open_sibling(attr, leader);
    open_sibling(attr, leader);
    attr.disabled = 1;
    for (int i = 0; i < 30; i++) others[i] = open_event(attr), enable(others[i]);
    enable(leader);
    for (int i = 0; i < 100; i++) million();
    disable(leader);
    uint64_t values[6];
    EQUAL(read(leader, values, sizeof values), 48);
    EQUAL(values[0], 3);
    COMPARE(values[2], >, 0);
    COMPARE(values[2], <, values[1]);
    COMPARE(values[3], >, 0);
    EQUAL(values[3], values[4]);
    EQUAL(values[3], values[5]);
}
