// As many as the CPU has, and no more: ENOSPC; one that is closed makes room, one that is disabled does not.
#include "../behaviour.h"

static uint64_t slot;

BEHAVIOUR(breakpoint_slots, SLOTS) {
    Attr attr = attr_of(PERF_TYPE_BREAKPOINT, 0);
    attr.bp_type = HW_BREAKPOINT_W;
    attr.bp_addr = (unsigned long)&slot;
    attr.bp_len = 8;
    int last = -1, event, opened = 0;
    while ((event = try_open(attr, 0, -1, -1, 0)) >= 0) last = event, opened++;
    EQUAL(errno, ENOSPC);
    COMPARE(opened, >=, 4);
    COMPARE(opened, <=, 16);
    EQUAL(open_error(attr), ENOSPC);
    close(last);
    EQUAL(open_error(attr), 0);
}
