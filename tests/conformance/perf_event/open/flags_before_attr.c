// The flags are looked at before the attr.
#include "../behaviour.h"

BEHAVIOUR(flags_before_attr, NOTHING) { FAILS(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 1UL << 10), EINVAL); }
