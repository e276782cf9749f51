// A task that does not exist: ESRCH.
#include "../behaviour.h"

BEHAVIOUR(no_such_task, NOTHING) { FAILS(try_open(DUMMY, 1 << 29, -1, -1, 0), ESRCH); }
