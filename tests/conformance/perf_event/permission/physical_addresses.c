// PERF_SAMPLE_PHYS_ADDR is the kernel's: EACCES at 2, and not at 1.
#include "../behaviour.h"

static void sample_physical(void) {
    become_nobody();
    Attr attr = DUMMY;
    attr.sample_type = PERF_SAMPLE_PHYS_ADDR;
    EQUAL(open_error(attr), number_in("/proc/sys/kernel/perf_event_paranoid") > 1 ? EACCES : 0);
}

BEHAVIOUR(physical_addresses, A_MACHINE) {
    set_sysctl("perf_event_paranoid", 2);
    apart(sample_physical);
    set_sysctl("perf_event_paranoid", 1);
    apart(sample_physical);
}
