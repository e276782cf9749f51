// x86-64's DS, ES, FS and GS are not sampled: EINVAL. AArch64's first 33 registers are all there.
#include "../behaviour.h"

BEHAVIOUR(registers_of_segments, NOTHING) {
    Attr attr = DUMMY;
    attr.sample_type = PERF_SAMPLE_REGS_USER;
#ifdef __x86_64__
    for (int bit = 12; bit < 16; bit++) {
        attr.sample_regs_user = 1UL << bit;
        EQUAL(open_error(attr), EINVAL);
    }
    attr.sample_regs_user = 0xff0fff;
#else
    attr.sample_regs_user = (1UL << 33) - 1;
#endif
    EQUAL(open_error(attr), 0);
}
