// The records of one buffer have one clock, and one direction.
#include "../behaviour.h"

BEHAVIOUR(set_output_across_clocks, NOTHING) {
    Attr attr = DUMMY;
    int other = open_event(attr);
    CHECK(map(other, 1) != MAP_FAILED);
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC_RAW;
    FAILS(ioctl(open_event(attr), PERF_EVENT_IOC_SET_OUTPUT, other), EINVAL);
    attr.use_clockid = 0;
    attr.write_backward = 1;
    FAILS(ioctl(open_event(attr), PERF_EVENT_IOC_SET_OUTPUT, other), EINVAL);
}
