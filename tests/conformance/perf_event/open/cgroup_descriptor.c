// PERF_FLAG_PID_CGROUP: a descriptor that is not open is EBADF.
#include "../behaviour.h"

BEHAVIOUR(cgroup_descriptor, ROOT) {
    int event = try_open(DUMMY, 9999, 0, -1, PERF_FLAG_PID_CGROUP);
    EQUAL(event, -1);
    if (errno == EINVAL) SKIP("no CONFIG_CGROUP_PERF");
    EQUAL(errno, EBADF);
}
