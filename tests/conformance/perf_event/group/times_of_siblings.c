// A sibling does not age while its leader is off.
#include "../behaviour.h"

BEHAVIOUR(times_of_siblings, NOTHING) {
    Attr attr = DUMMY;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
    int leader = open_event(attr);
    attr.disabled = 0;
    int sibling = open_sibling(attr, leader);
    loops(100000);
    uint64_t values[2];
    EQUAL(read(sibling, values, sizeof values), 16);
    EQUAL(values[1], 0);
    enable(leader);
    loops(100000);
    EQUAL(read(sibling, values, sizeof values), 16);
    COMPARE(values[1], >, 0);
}
