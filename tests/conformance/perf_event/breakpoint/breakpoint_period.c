// Ten thousand hits with a period of 100: 100 samples.
#include "../behaviour.h"

static volatile uint64_t often;

BEHAVIOUR(breakpoint_period, SLOTS) {
    Attr attr = attr_of(PERF_TYPE_BREAKPOINT, 0);
    attr.bp_type = HW_BREAKPOINT_W;
    attr.bp_addr = (unsigned long)&often;
    attr.bp_len = 8;
    attr.sample_period = 100;
    attr.sample_type = PERF_SAMPLE_IP;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 8);
    enable(event);
    for (int i = 0; i < 10000; i++) often = i;
    disable(event);
    EQUAL(count_of(event), 10000);
    EQUAL(remaining(ring, PERF_RECORD_SAMPLE), 100);
}
