// PERF_FLAG_FD_CLOEXEC: the descriptor is closed by execve. Without it, it is not.
#include "../behaviour.h"

BEHAVIOUR(cloexec_flag, NOTHING) {
    int closed = try_open(DUMMY, 0, -1, -1, PERF_FLAG_FD_CLOEXEC), kept = try_open(DUMMY, 0, -1, -1, 0);
    EQUAL(fcntl(closed, F_GETFD), FD_CLOEXEC);
    EQUAL(fcntl(kept, F_GETFD), 0);
}
