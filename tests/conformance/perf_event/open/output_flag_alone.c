// PERF_FLAG_FD_OUTPUT without a group_fd says nothing.
#include "../behaviour.h"

BEHAVIOUR(output_flag_alone, NOTHING) { SUCCEEDS(try_open(DUMMY, 0, -1, -1, PERF_FLAG_FD_OUTPUT)); }
