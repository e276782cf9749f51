// Neither a task nor a CPU: EINVAL.
#include "../behaviour.h"

BEHAVIOUR(nobody, NOTHING) { FAILS(try_open(DUMMY, -1, -1, -1, 0), EINVAL); }
