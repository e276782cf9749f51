// perf_event_paranoid 0: CPUs may be watched.
#include "../behaviour.h"

static void watch_cpu(void) {
    become_nobody();
    Attr attr = DUMMY;
    attr.exclude_kernel = 0;
    SUCCEEDS(try_open(attr, -1, 0, -1, 0));
}

BEHAVIOUR(cpu_at_0, A_MACHINE) {
    set_sysctl("perf_event_paranoid", 0);
    apart(watch_cpu);
}
