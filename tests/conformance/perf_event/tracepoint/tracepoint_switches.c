// sched:sched_switch of a task: when it leaves, with what comes next.
#include "../behaviour.h"

BEHAVIOUR(tracepoint_switches, TRACEFS) {
    Attr attr = attr_of(PERF_TYPE_TRACEPOINT, number_in("/sys/kernel/tracing/events/sched/sched_switch/id"));
    attr.exclude_kernel = 0;
    int event = open_event(attr);
    enable(event);
    for (int i = 0; i < 4; i++) sleep_ms(1);
    disable(event);
    COMPARE(count_of(event), >=, 4);
    COMPARE(count_of(event), <, 20);
}
