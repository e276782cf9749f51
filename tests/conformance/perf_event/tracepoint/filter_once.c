// A second filter: EEXIST.
#include "../behaviour.h"

BEHAVIOUR(filter_once, TRACEFS) {
    Attr attr = attr_of(PERF_TYPE_TRACEPOINT, number_in("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id"));
    attr.exclude_kernel = 0;
    int event = open_event(attr);
    SUCCEEDS(ioctl(event, PERF_EVENT_IOC_SET_FILTER, "id == 1"));
    FAILS(ioctl(event, PERF_EVENT_IOC_SET_FILTER, "id == 2"), EEXIST);
}
