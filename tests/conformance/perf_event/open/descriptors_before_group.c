// A free descriptor is looked for before the group's.
#include "../behaviour.h"

BEHAVIOUR(descriptors_before_group, NOTHING) {
    struct rlimit few = {3, 3};
    SUCCEEDS(setrlimit(RLIMIT_NOFILE, &few));
    FAILS(try_open(DUMMY, 0, -1, 9999, 0), EMFILE);
}
