// PERF_FLAG_FD_OUTPUT needs a buffer to write into.
#include "../behaviour.h"

BEHAVIOUR(output_flag, NOTHING) {
    int other = open_event(DUMMY);
    FAILS(try_open(DUMMY, 0, -1, other, PERF_FLAG_FD_OUTPUT | PERF_FLAG_FD_NO_GROUP), EINVAL);
}
