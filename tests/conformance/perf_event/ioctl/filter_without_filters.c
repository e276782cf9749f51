// IOC_SET_FILTER: events that have no filters say EINVAL; a text that cannot be read is EFAULT.
#include "../behaviour.h"

BEHAVIOUR(filter_without_filters, NOTHING) {
    int event = open_event(DUMMY);
    FAILS(ioctl(event, PERF_EVENT_IOC_SET_FILTER, "a == 1"), EINVAL);
    FAILS(ioctl(event, PERF_EVENT_IOC_SET_FILTER, NULL), EFAULT);
}
