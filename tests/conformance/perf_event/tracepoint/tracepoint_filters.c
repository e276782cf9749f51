// IOC_SET_FILTER: only what fits it counts.
#include "../behaviour.h"

BEHAVIOUR(tracepoint_filters, TRACEFS) {
    Attr attr = attr_of(PERF_TYPE_TRACEPOINT, number_in("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id"));
    attr.exclude_kernel = 0;
    int event = open_event(attr);
    char text[60];
    snprintf(text, sizeof text, "id == %d", SYS_getppid);
    SUCCEEDS(ioctl(event, PERF_EVENT_IOC_SET_FILTER, text));
    enable(event);
    for (int i = 0; i < 5; i++) syscall(SYS_getppid), syscall(SYS_gettid);
    disable(event);
    EQUAL(count_of(event), 5);
}
