// A cache, an operation or a result that there is not: EINVAL.
#include "../behaviour.h"

BEHAVIOUR(hardware_cache_unknown, PMU) {
    EQUAL(open_error(attr_of(PERF_TYPE_HW_CACHE, 7)), EINVAL);
    EQUAL(open_error(attr_of(PERF_TYPE_HW_CACHE, 3 << 8)), EINVAL);
    EQUAL(open_error(attr_of(PERF_TYPE_HW_CACHE, 2 << 16)), EINVAL);
}
