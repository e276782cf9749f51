// A tracepoint of a system call counts each.
#include "../behaviour.h"

BEHAVIOUR(counts_calls, TRACEFS) {
    Attr attr = attr_of(PERF_TYPE_TRACEPOINT, number_in("/sys/kernel/tracing/events/syscalls/sys_enter_getppid/id"));
    attr.exclude_kernel = 0;
    int event = open_event(attr);
    enable(event);
    for (int i = 0; i < 12; i++) syscall(SYS_getppid);
    disable(event);
    EQUAL(count_of(event), 12);
}
