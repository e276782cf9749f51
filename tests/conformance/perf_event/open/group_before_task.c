// The group's descriptor is looked at before the task.
#include "../behaviour.h"

BEHAVIOUR(group_before_task, NOTHING) { FAILS(try_open(DUMMY, 1 << 29, -1, 9999, 0), EBADF); }
