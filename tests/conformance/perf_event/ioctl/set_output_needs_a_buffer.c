// IOC_SET_OUTPUT to an event without a buffer, to itself, to no event.
#include "../behaviour.h"

BEHAVIOUR(set_output_needs_a_buffer, NOTHING) {
    int event = open_event(DUMMY), other = open_event(DUMMY);
    FAILS(ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, other), EINVAL);
    FAILS(ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, event), EINVAL);
    FAILS(ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, 9999), EBADF);
    FAILS(ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, open("/dev/null", O_RDONLY)), EBADF);
    SUCCEEDS(ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, -1L));
}
