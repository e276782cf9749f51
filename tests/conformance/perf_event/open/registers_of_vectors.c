// x86's XMM registers are known, but only a PMU can sample them: EOPNOTSUPP. AArch64 has no such bits.
#include "../behaviour.h"

BEHAVIOUR(registers_of_vectors, NOTHING) {
    Attr attr = DUMMY;
    attr.sample_type = PERF_SAMPLE_REGS_USER;
    attr.sample_regs_user = 1UL << 63;
#ifdef __x86_64__
    EQUAL(open_error(attr), EOPNOTSUPP);
#else
    EQUAL(open_error(attr), EINVAL);
#endif
}
