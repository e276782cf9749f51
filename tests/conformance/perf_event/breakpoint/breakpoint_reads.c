// HW_BREAKPOINT_RW counts both.
#include "../behaviour.h"

static volatile uint64_t accessed;

BEHAVIOUR(breakpoint_reads, SLOTS) {
    Attr attr = attr_of(PERF_TYPE_BREAKPOINT, 0);
    attr.bp_type = HW_BREAKPOINT_RW;
    attr.bp_addr = (unsigned long)&accessed;
    attr.bp_len = 8;
    int event = open_event(attr);
    enable(event);
    for (int i = 0; i < 5; i++) accessed = i;
    for (int i = 0; i < 15; i++) (void)accessed;
    disable(event);
    EQUAL(count_of(event), 20);
}
