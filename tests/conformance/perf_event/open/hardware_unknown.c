// A generic event that there is not EINVAL.
#include "../behaviour.h"

BEHAVIOUR(hardware_unknown, PMU) {
    EQUAL(open_error(attr_of(PERF_TYPE_HARDWARE, 10)), EINVAL);
    EQUAL(open_error(attr_of(PERF_TYPE_HARDWARE, 1000)), EINVAL);
    EQUAL(open_error(attr_of(PERF_TYPE_HARDWARE, 0xffffffff)), EINVAL);
}
