// bp_type is one of R, W, RW and X: no type, and X with others, are EINVAL.
#include "../behaviour.h"

static uint64_t typed;

BEHAVIOUR(breakpoint_types, SLOTS) {
    Attr attr = attr_of(PERF_TYPE_BREAKPOINT, 0);
    attr.bp_addr = (unsigned long)&typed;
    attr.bp_len = 8;
    attr.bp_type = HW_BREAKPOINT_EMPTY;
    EQUAL(open_error(attr), EINVAL);
    attr.bp_type = HW_BREAKPOINT_X | HW_BREAKPOINT_W;
    EQUAL(open_error(attr), EINVAL);
    attr.bp_type = 8;
    EQUAL(open_error(attr), EINVAL);
}
