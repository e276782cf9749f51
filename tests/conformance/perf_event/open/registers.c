// Sampled registers are some, and such as there are.
#include "../behaviour.h"

BEHAVIOUR(registers, NOTHING) {
    Attr attr = DUMMY;
    attr.sample_type = PERF_SAMPLE_REGS_USER;
    EQUAL(open_error(attr), EINVAL);
    attr.sample_regs_user = 1;
    EQUAL(open_error(attr), 0);
    attr.sample_regs_user = 1UL << NO_REGISTER;
    EQUAL(open_error(attr), EINVAL);
    attr.sample_type = PERF_SAMPLE_REGS_INTR;
    EQUAL(open_error(attr), EINVAL);
    attr.sample_regs_intr = 1;
    EQUAL(open_error(attr), 0);
    attr.sample_regs_intr = 1UL << NO_REGISTER;
    EQUAL(open_error(attr), EINVAL);
}
