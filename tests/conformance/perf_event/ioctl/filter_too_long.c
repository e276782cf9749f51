// A filter has less than a page: EINVAL.
#include "../behaviour.h"

BEHAVIOUR(filter_too_long, TRACEFS) {
    Attr attr = attr_of(PERF_TYPE_TRACEPOINT, number_in("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id"));
    attr.exclude_kernel = 0;
    char* text = malloc(page_size() + 1);
    memset(text, ' ', page_size());
    memcpy(text, "id == 1", 7);
    text[page_size()] = 0;
    FAILS(ioctl(open_event(attr), PERF_EVENT_IOC_SET_FILTER, text), EINVAL);
    text[page_size() - 1] = 0;
    SUCCEEDS(ioctl(open_event(attr), PERF_EVENT_IOC_SET_FILTER, text));
}
