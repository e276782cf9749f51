// use_clockid: a software event may have any of these; others are EINVAL.
#include "../behaviour.h"

BEHAVIOUR(clocks, NOTHING) {
    static const int CLOCKS[] = {CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME, CLOCK_BOOTTIME, CLOCK_TAI};
    Attr attr = DUMMY;
    attr.use_clockid = 1;
    for (int i = 0; i < 5; i++) {
        attr.clockid = CLOCKS[i];
        EQUAL(open_error(attr), 0);
    }
    static const int OTHERS[] = {CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, CLOCK_MONOTONIC_COARSE, 50, -1};
    for (int i = 0; i < 5; i++) {
        attr.clockid = OTHERS[i];
        EQUAL(open_error(attr), EINVAL);
    }
}
