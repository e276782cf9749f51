// Filters that are right, and such as are not: EINVAL.
#include "../behaviour.h"

BEHAVIOUR(filter_grammar, TRACEFS) {
    static const char* const RIGHT[] = {"id == 1", "id > 3 && id < 10", "!(id == 4) || common_pid == 1", "id & 7",
                                        "id == 0x10"};
    static const char* const WRONG[] = {"id",      "id = 1",     "nothing == 1", "",
                                        "id == x", "id ~ \"x\"", "id == \"x\"",  "common_comm == \"x\""};
    Attr attr = attr_of(PERF_TYPE_TRACEPOINT, number_in("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id"));
    attr.exclude_kernel = 0;
    for (int i = 0; i < 8; i++) FAILS(ioctl(open_event(attr), PERF_EVENT_IOC_SET_FILTER, WRONG[i]), EINVAL);
    FAILS(ioctl(open_event(attr), PERF_EVENT_IOC_SET_FILTER, "(id == 1"), ENOENT);  // as the kernel's parser has it
    FAILS(ioctl(open_event(attr), PERF_EVENT_IOC_SET_FILTER, "id == 1)"), EPERM);
    for (int i = 0; i < 5; i++) SUCCEEDS(ioctl(open_event(attr), PERF_EVENT_IOC_SET_FILTER, RIGHT[i]));
}
