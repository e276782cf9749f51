// An event that was closed says EBADF.
#include "../behaviour.h"

BEHAVIOUR(closed_while_polled, NOTHING) {
    int event = open_event(DUMMY);
    uint64_t value;
    close(event);
    FAILS(read(event, &value, sizeof value), EBADF);
    FAILS(ioctl(event, PERF_EVENT_IOC_ENABLE, 0), EBADF);
}
