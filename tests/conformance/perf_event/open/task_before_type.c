// The task is looked for before anybody is asked for the event.
#include "../behaviour.h"

BEHAVIOUR(task_before_type, NOTHING) { FAILS(try_open(attr_of(77777, 0), 1 << 29, -1, -1, 0), ESRCH); }
