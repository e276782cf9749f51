// Flags of the call that mean nothing are EINVAL.
#include "../behaviour.h"

BEHAVIOUR(flags_unknown, NOTHING) {
    for (int bit = 4; bit < 64; bit++) FAILS(try_open(DUMMY, 0, -1, -1, 1UL << bit), EINVAL);
    FAILS(try_open(DUMMY, 0, -1, -1, ~0UL), EINVAL);
}
