// raw_syscalls:sys_enter counts whichever is called.
#include "../behaviour.h"

BEHAVIOUR(all_calls, TRACEFS) {
    Attr attr = attr_of(PERF_TYPE_TRACEPOINT, number_in("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id"));
    attr.exclude_kernel = 0;
    int event = open_event(attr);
    enable(event);
    for (int i = 0; i < 5; i++) syscall(SYS_getppid), syscall(SYS_gettid);
    disable(event);
    EQUAL(count_of(event), 11);  // that of DISABLE is counted as it enters
}
