// bp_type is one of W, RW and X, and on AArch64 R: no type, and X with others, are EINVAL.
#include "../behaviour.h"

static uint64_t typed;
static __attribute__((noinline)) void type_of_this(void) { __asm__ volatile(""); }

BEHAVIOUR(breakpoint_types, SLOTS) {
    Attr attr = attr_of(PERF_TYPE_BREAKPOINT, 0);
    attr.bp_addr = (unsigned long)&typed;
    attr.bp_len = 8;
    static const struct {
        unsigned type;
        int error;
    } TYPES[] = {
#ifdef __x86_64__
        {HW_BREAKPOINT_R, EINVAL},
#else
        {HW_BREAKPOINT_R, 0},
#endif
        {HW_BREAKPOINT_W, 0},
        {HW_BREAKPOINT_RW, 0},
    };
    for (unsigned i = 0; i < sizeof TYPES / sizeof *TYPES; i++) {
        attr.bp_type = TYPES[i].type;
        EQUAL(open_error(attr), TYPES[i].error);
    }
    Attr executed = attr;
    executed.bp_type = HW_BREAKPOINT_X;
    executed.bp_addr = (unsigned long)type_of_this;
    EQUAL(open_error(executed), 0);
    attr.bp_type = HW_BREAKPOINT_EMPTY;
    EQUAL(open_error(attr), EINVAL);
    attr.bp_type = HW_BREAKPOINT_X | HW_BREAKPOINT_W;
    EQUAL(open_error(attr), EINVAL);
    attr.bp_type = 8;
    EQUAL(open_error(attr), EINVAL);
}
