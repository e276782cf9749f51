// ... and of a group, too, even if it has room for the leader.
#include "../behaviour.h"

BEHAVIOUR(too_little_room_for_a_group, NOTHING) {
    Attr attr = DUMMY;
    attr.read_format = PERF_FORMAT_GROUP;
    int leader = open_event(attr);
    open_sibling(attr, leader);
    uint64_t values[3];
    FAILS(read(leader, values, 16), ENOSPC);
    EQUAL(read(leader, values, 24), 24);
}
