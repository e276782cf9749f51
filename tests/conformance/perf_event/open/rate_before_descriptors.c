// What is wrong with the rate is said before there is no descriptor left.
#include "../behaviour.h"

BEHAVIOUR(rate_before_descriptors, NOTHING) {
    struct rlimit few = {3, 3};
    SUCCEEDS(setrlimit(RLIMIT_NOFILE, &few));
    Attr attr = DUMMY;
    attr.sample_period = 1UL << 63;
    FAILS(try_open(attr, 0, -1, -1, 0), EINVAL);
}
