// A group that is inherited is read as one, with the sums of each member.
#include "../behaviour.h"

static void fault_fifty(void) { fault(50); }

BEHAVIOUR(whole_groups, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.inherit = 1;
    attr.read_format = PERF_FORMAT_GROUP;
    int leader = open_event(attr);
    attr.disabled = 0;
    open_sibling(attr, leader);
    enable(leader);
    finish(start(fault_fifty));
    uint64_t values[3];
    disable(leader);
    EQUAL(read(leader, values, sizeof values), 24);
    EQUAL(values[0], 2);
    COMPARE(values[1], >=, 50);
    EQUAL(values[1], values[2]);
}
