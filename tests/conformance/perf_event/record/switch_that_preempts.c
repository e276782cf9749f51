// A task that sleeps has gone by itself; one that is driven out has PERF_RECORD_MISC_SWITCH_OUT_PREEMPT.
#include "../behaviour.h"

static void spin_for_long(void) {
    for (int i = 0; i < 60; i++) million();
}

BEHAVIOUR(switch_that_preempts, NOTHING) {
    run_on(0);
    Attr attr = DUMMY;
    attr.context_switch = 1;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 8);
    enable(event);
    sleep_ms(2);
    disable(event);
    Header* header = next_of(ring, PERF_RECORD_SWITCH);
    CHECK(header);
    EQUAL(header->misc & (PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT),
          PERF_RECORD_MISC_SWITCH_OUT);
    remaining(ring, PERF_RECORD_SWITCH);
    struct child child = start(spin_for_long);
    let_go(child);
    enable(event);
    int preempted = 0;
    for (int i = 0; i < 60; i++) million();
    disable(event);
    while ((header = next_of(ring, PERF_RECORD_SWITCH)))
        preempted += !!(header->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
    EQUAL(wait_for(child.pid), 0);
    COMPARE(preempted, >=, 1);
}
