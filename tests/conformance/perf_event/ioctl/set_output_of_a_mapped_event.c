// An event whose own buffer is mapped writes no other.
#include "../behaviour.h"

BEHAVIOUR(set_output_of_a_mapped_event, NOTHING) {
    int event = open_event(DUMMY), other = open_event(DUMMY);
    CHECK(map(event, 1) != MAP_FAILED);
    CHECK(map(other, 1) != MAP_FAILED);
    FAILS(ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, other), EINVAL);
    FAILS(ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, -1L), EINVAL);
}
