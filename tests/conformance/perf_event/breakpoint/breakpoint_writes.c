// HW_BREAKPOINT_W counts writes, and no reads.
#include "../behaviour.h"

static volatile uint64_t written;

BEHAVIOUR(breakpoint_writes, SLOTS) {
    Attr attr = attr_of(PERF_TYPE_BREAKPOINT, 0);
    attr.bp_type = HW_BREAKPOINT_W;
    attr.bp_addr = (unsigned long)&written;
    attr.bp_len = 8;
    int event = open_event(attr);
    enable(event);
    for (int i = 0; i < 20; i++) written = i;
    for (int i = 0; i < 15; i++) (void)written;
    disable(event);
    EQUAL(count_of(event), 20);
}
