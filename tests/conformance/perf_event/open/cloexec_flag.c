// PERF_FLAG_FD_CLOEXEC: the descriptor is closed by execve. Without it, it is not.
#include "../behaviour.h"

BEHAVIOUR(cloexec_flag, NOTHING) {
    if (behaviour_again) {
        int closed, kept;
        EQUAL(sscanf(behaviour_again, "%d %d", &closed, &kept), 2);
        FAILS(fcntl(closed, F_GETFD), EBADF);
        EQUAL(fcntl(kept, F_GETFD), 0);
        _exit(0);
    }
    int closed = try_open(DUMMY, 0, -1, -1, PERF_FLAG_FD_CLOEXEC), kept = try_open(DUMMY, 0, -1, -1, 0);
    EQUAL(fcntl(closed, F_GETFD), FD_CLOEXEC);
    EQUAL(fcntl(kept, F_GETFD), 0);
    char text[40];
    snprintf(text, sizeof text, "%d %d", closed, kept);
    exec_again(text);
}
