// sched:sched_switch of a task: when it leaves, with what comes next.
#include "../behaviour.h"

BEHAVIOUR(tracepoint_switches, TRACEFS) {
    Attr attr = attr_of(PERF_TYPE_TRACEPOINT, number_in("/sys/kernel/tracing/events/sched/sched_switch/id"));
    attr.exclude_kernel = 0;
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_RAW;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 8);
    enable(event);
    for (int i = 0; i < 4; i++) sleep_ms(1);
    disable(event);
    COMPARE(count_of(event), >=, 4);
    COMPARE(count_of(event), <, 20);
    for (uint64_t left = count_of(event); left; left--) {
        char* raw = (char*)body_of(ring, PERF_RECORD_SAMPLE) + 4;
        EQUAL(*(int32_t*)(raw + 24), getpid());    // prev_pid
        CHECK(*(int32_t*)(raw + 56) != getpid());  // next_pid
    }
    CHECK(!next_of(ring, PERF_RECORD_SAMPLE));
}
