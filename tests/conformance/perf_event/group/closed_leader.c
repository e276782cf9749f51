// When a leader is closed its siblings go on by themselves.
#include "../behaviour.h"

BEHAVIOUR(closed_leader, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.disabled = 0;
    int leader = open_event(attr);
    attr.read_format = PERF_FORMAT_GROUP;
    int sibling = open_sibling(attr, leader);
    close(leader);
    uint64_t values[4];
    EQUAL(read(sibling, values, sizeof values), 16);
    EQUAL(values[0], 1);
    fault(10);
    uint64_t before = values[1];
    EQUAL(read(sibling, values, sizeof values), 16);
    COMPARE(values[1], >=, before + 10);
}
