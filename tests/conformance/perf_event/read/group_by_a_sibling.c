// PERF_FORMAT_GROUP of a sibling: the whole group, as its leader has it.
#include "../behaviour.h"

BEHAVIOUR(group_by_a_sibling, NOTHING) {
    Attr attr = DUMMY;
    attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
    int leader = open_event(attr), sibling = open_sibling(attr, leader);
    uint64_t values[8];
    EQUAL(read(sibling, values, sizeof values), 40);
    EQUAL(values[0], 2);
    EQUAL(values[2], id_of(leader));
    EQUAL(values[4], id_of(sibling));
}
