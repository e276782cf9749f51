// All of a group have one clock.
#include "../behaviour.h"

BEHAVIOUR(group_of_another_clock, NOTHING) {
    Attr attr = DUMMY;
    int leader = open_event(attr);
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC;
    FAILS(try_open(attr, 0, -1, leader, 0), EINVAL);
}
