// A CPU beyond all that could ever be, or below -1: EINVAL.
#include "../behaviour.h"

BEHAVIOUR(cpu_that_cannot_be, NOTHING) {
    FAILS(try_open(DUMMY, 0, 1 << 20, -1, 0), EINVAL);
    FAILS(try_open(DUMMY, -1, 1 << 20, -1, 0), EINVAL);
    FAILS(try_open(DUMMY, 0, -5, -1, 0), EINVAL);
    FAILS(try_open(DUMMY, -1, -5, -1, 0), EINVAL);
}
