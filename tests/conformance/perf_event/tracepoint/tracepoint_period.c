// Each third occurrence gives a sample.
#include "../behaviour.h"

BEHAVIOUR(tracepoint_period, TRACEFS) {
    Attr attr = attr_of(PERF_TYPE_TRACEPOINT, number_in("/sys/kernel/tracing/events/syscalls/sys_enter_getppid/id"));
    attr.exclude_kernel = 0;
    attr.sample_period = 3;
    attr.sample_type = PERF_SAMPLE_TID;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    for (int i = 0; i < 10; i++) syscall(SYS_getppid);
    disable(event);
    EQUAL(count_of(event), 10);
    EQUAL(remaining(ring, PERF_RECORD_SAMPLE), 3);
}
