// perf_event_paranoid 2: without capabilities only with exclude_kernel. EACCES.
#include "../behaviour.h"

static void watch_kernel(void) {
    become_nobody();
    Attr attr = SOFTWARE(PAGE_FAULTS);
    EQUAL(open_error(attr), 0);
    attr.exclude_kernel = 0;
    EQUAL(open_error(attr), EACCES);
    attr.__reserved_2 = 1;  // what is wrong with the attr is said first
    EQUAL(open_error(attr), EINVAL);
    attr.__reserved_2 = 0;
    attr.sample_period = 1UL << 63;  // what is wrong with the rate is not
    EQUAL(open_error(attr), EACCES);
}

BEHAVIOUR(kernel_at_2, A_MACHINE) {
    set_sysctl("perf_event_paranoid", 2);
    apart(watch_kernel);
}
