// sched:sched_process_fork of a task: each child.
#include "../behaviour.h"

BEHAVIOUR(tracepoint_forks, TRACEFS) {
    Attr attr = attr_of(PERF_TYPE_TRACEPOINT, number_in("/sys/kernel/tracing/events/sched/sched_process_fork/id"));
    attr.exclude_kernel = 0;
    int forks = open_event(attr);
    enable(forks);
    for (int i = 0; i < 3; i++) finish(start(NULL));
    disable(forks);
    EQUAL(count_of(forks), 3);
}
