// A CPU and pid -1: an event of whatever that CPU does.
#include "../behaviour.h"

BEHAVIOUR(cpu_alone, ROOT) { SUCCEEDS(try_open(DUMMY, -1, 0, -1, 0)); }
