// A pid below -1 is nobody's: ESRCH.
#include "../behaviour.h"

BEHAVIOUR(negative_task, NOTHING) { FAILS(try_open(DUMMY, -2, -1, -1, 0), ESRCH); }
