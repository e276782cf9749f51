// A group that the PMU could never count is refused when it grows too big: EINVAL.
#include "../behaviour.h"

BEHAVIOUR(too_big, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.disabled = 0;
    int leader = open_event(attr), members = 1;
    while (members < 100 && try_open(attr, 0, -1, leader, 0) >= 0) members++;
    EQUAL(errno, EINVAL);
    COMPARE(members, <, 100);
}
