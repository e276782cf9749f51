// A software event that there is not: ENOENT.
#include "../behaviour.h"

BEHAVIOUR(software_unknown, NOTHING) {
    EQUAL(open_error(attr_of(PERF_TYPE_SOFTWARE, 12)), ENOENT);
    EQUAL(open_error(attr_of(PERF_TYPE_SOFTWARE, 1000)), ENOENT);
    EQUAL(open_error(attr_of(PERF_TYPE_SOFTWARE, 1UL << 40)), ENOENT);
}
