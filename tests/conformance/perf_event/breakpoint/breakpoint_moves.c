// IOC_MODIFY_ATTRIBUTES moves it; the count goes on.
#include "../behaviour.h"

static volatile uint64_t moved[2];

BEHAVIOUR(breakpoint_moves, SLOTS) {
    Attr attr = attr_of(PERF_TYPE_BREAKPOINT, 0);
    attr.bp_type = HW_BREAKPOINT_W;
    attr.bp_addr = (unsigned long)&moved[0];
    attr.bp_len = 8;
    attr.disabled = 0;
    int event = open_event(attr);
    moved[0] = 1;
    attr.bp_addr = (unsigned long)&moved[1];
    SUCCEEDS(ioctl(event, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr));
    moved[0] = 2;
    moved[1] = 1, moved[1] = 2;
    EQUAL(count_of(event), 3);
}
