// A generic event that there is not cannot be opened.
#include "../behaviour.h"

BEHAVIOUR(hardware_unknown, PMU) {
    CHECK(open_error(attr_of(PERF_TYPE_HARDWARE, 10)) != 0);
    CHECK(open_error(attr_of(PERF_TYPE_HARDWARE, 1000)) != 0);
    CHECK(open_error(attr_of(PERF_TYPE_HARDWARE, 0xffffffff)) != 0);
}
