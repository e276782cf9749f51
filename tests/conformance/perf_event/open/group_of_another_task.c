// All of a group count the same task.
#include "../behaviour.h"

BEHAVIOUR(group_of_another_task, NOTHING) {
    struct child child = start(NULL);
    int leader = open_of(DUMMY, child.pid, -1, -1);
    FAILS(try_open(DUMMY, 0, -1, leader, 0), EINVAL);
    finish(child);
}
