// Root may watch the first task, pid 1.
#include "../behaviour.h"

BEHAVIOUR(first_task, ROOT) { SUCCEEDS(try_open(DUMMY, 1, -1, -1, 0)); }
