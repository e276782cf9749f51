// A sibling is inherited if its leader is.
#include "../behaviour.h"

BEHAVIOUR(group_inherits_as_one, NOTHING) {
    Attr attr = DUMMY;
    attr.inherit = 1;
    int leader = open_event(attr), other = open_event(DUMMY);
    FAILS(try_open(DUMMY, 0, -1, leader, 0), EINVAL);
    FAILS(try_open(attr, 0, -1, other, 0), EINVAL);
    SUCCEEDS(try_open(attr, 0, -1, leader, 0));
}
