// Only a leader is pinned or exclusive.
#include "../behaviour.h"

BEHAVIOUR(pinned_sibling, NOTHING) {
    int leader = open_event(DUMMY);
    Attr attr = DUMMY;
    attr.pinned = 1;
    FAILS(try_open(attr, 0, -1, leader, 0), EINVAL);
    attr.pinned = 0;
    attr.exclusive = 1;
    FAILS(try_open(attr, 0, -1, leader, 0), EINVAL);
}
