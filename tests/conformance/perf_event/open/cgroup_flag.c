// PERF_FLAG_PID_CGROUP needs a CPU, and a descriptor.
#include "../behaviour.h"

BEHAVIOUR(cgroup_flag, NOTHING) {
    FAILS(try_open(DUMMY, 0, -1, -1, PERF_FLAG_PID_CGROUP), EINVAL);
    FAILS(try_open(DUMMY, -1, 0, -1, PERF_FLAG_PID_CGROUP), EINVAL);
}
