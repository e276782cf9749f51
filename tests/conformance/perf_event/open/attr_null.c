// Without an attr: EFAULT.
#include "../behaviour.h"

BEHAVIOUR(attr_null, NOTHING) { FAILS(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0), EFAULT); }
