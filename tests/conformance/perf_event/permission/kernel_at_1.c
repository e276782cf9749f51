// perf_event_paranoid 1: the kernel may be watched, CPUs may not.
#include "../behaviour.h"

static void watch_kernel_and_cpu(void) {
    become_nobody();
    Attr attr = SOFTWARE(PAGE_FAULTS);
    attr.exclude_kernel = 0;
    EQUAL(open_error(attr), 0);
    FAILS(try_open(attr, -1, 0, -1, 0), EACCES);
    SUCCEEDS(try_open(attr, 0, 0, -1, 0));
}

BEHAVIOUR(kernel_at_1, A_MACHINE) {
    set_sysctl("perf_event_paranoid", 1);
    apart(watch_kernel_and_cpu);
}
