// A period has 63 bits: EINVAL if more.
#include "../behaviour.h"

BEHAVIOUR(period_limit, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS);
    attr.sample_period = (1UL << 63) - 1;
    EQUAL(open_error(attr), 0);
    attr.sample_period = 1UL << 63;
    EQUAL(open_error(attr), EINVAL);
    attr.sample_period = 0xc0000000000000bd;
    EQUAL(open_error(attr), EINVAL);
}
