// Only a leader has a group.
#include "../behaviour.h"

BEHAVIOUR(group_of_a_sibling, NOTHING) {
    int leader = open_event(DUMMY), sibling = open_sibling(DUMMY, leader);
    FAILS(try_open(DUMMY, 0, -1, sibling, 0), EINVAL);
}
