// A buffer of events on any CPU is one task's.
#include "../behaviour.h"

BEHAVIOUR(set_output_across_tasks, NOTHING) {
    struct child child = start(NULL);
    int event = open_of(DUMMY, child.pid, -1, -1), other = open_event(DUMMY);
    CHECK(map(other, 1) != MAP_FAILED);
    FAILS(ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, other), EINVAL);
    finish(child);
}
