// perf_event_paranoid 3, in Debian's kernels: nothing without capabilities.
#include "../behaviour.h"

static void watch_anything(void) {
    become_nobody();
    EQUAL(open_error(DUMMY), EACCES);
}

BEHAVIOUR(nothing_at_3, A_MACHINE) {
    set_sysctl("perf_event_paranoid", 3);
    apart(watch_anything);
}
