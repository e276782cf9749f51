// All of a group count on the same CPU.
#include "../behaviour.h"

BEHAVIOUR(group_of_another_cpu, TWO_CPUS) {
    int leader = open_of(DUMMY, 0, 0, -1);
    FAILS(try_open(DUMMY, 0, 1, leader, 0), EINVAL);
    FAILS(try_open(DUMMY, 0, -1, leader, 0), EINVAL);
    SUCCEEDS(try_open(DUMMY, 0, 0, leader, 0));
}
