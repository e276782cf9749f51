// ... and of events on one CPU, that CPU's, whatever the tasks.
#include "../behaviour.h"

BEHAVIOUR(set_output_across_cpus, TWO_CPUS) {
    struct child child = start(NULL);
    int event = open_of(DUMMY, 0, 0, -1), same = open_of(DUMMY, child.pid, 0, -1), other = open_of(DUMMY, 0, 1, -1);
    CHECK(map(event, 1) != MAP_FAILED);
    FAILS(ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, event), EINVAL);
    SUCCEEDS(ioctl(same, PERF_EVENT_IOC_SET_OUTPUT, event));
    finish(child);
}
