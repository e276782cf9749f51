// Lengths 1, 2, 4 and 8; others, and none, are EINVAL (AArch64 has all from 1 to 8).
#include "../behaviour.h"

static uint64_t word;

BEHAVIOUR(breakpoint_lengths, SLOTS) {
    for (unsigned length = 0; length < 12; length++) {
        Attr attr = attr_of(PERF_TYPE_BREAKPOINT, 0);
        attr.bp_type = HW_BREAKPOINT_W;
        attr.bp_addr = (unsigned long)&word;
        attr.bp_len = length;
#ifdef __x86_64__
        int right = length == 1 || length == 2 || length == 4 || length == 8;
#else
        int right = length >= 1 && length <= 8;
#endif
        EQUAL(open_error(attr), right ? 0 : EINVAL);
    }
}
