// exclude_kernel leaves a tracepoint nothing but what is user mode's: a system call's tracepoint counts all the same.
#include "../behaviour.h"

BEHAVIOUR(excludes_the_kernel_all, TRACEFS) {
    Attr attr = attr_of(PERF_TYPE_TRACEPOINT, number_in("/sys/kernel/tracing/events/syscalls/sys_enter_getppid/id"));
    int event = try_open(attr, 0, -1, -1, 0);
    SUCCEEDS(event);
    enable(event);
    syscall(SYS_getppid);
    disable(event);
    EQUAL(count_of(event), 1);
}
