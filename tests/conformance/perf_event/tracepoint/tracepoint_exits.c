// sched:sched_process_exit of a child: once.
#include "../behaviour.h"

BEHAVIOUR(tracepoint_exits, TRACEFS) {
    struct child child = start(NULL);
    Attr attr = attr_of(PERF_TYPE_TRACEPOINT, number_in("/sys/kernel/tracing/events/sched/sched_process_exit/id"));
    attr.exclude_kernel = attr.disabled = 0;
    int exits = open_of(attr, child.pid, -1, -1);
    finish(child);
    EQUAL(count_of(exits), 1);
}
