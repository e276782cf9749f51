// exclude_idle is not for Arm's PMU: EOPNOTSUPP or EPERM; it is for x86's.
#include "../behaviour.h"

BEHAVIOUR(excludes_idle, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.exclude_idle = 1;
#ifdef __x86_64__
    EQUAL(open_error(attr), 0);
#else
    CHECK(open_error(attr) == EOPNOTSUPP || open_error(attr) == EPERM);
#endif
}
