// PERF_SAMPLE_PHYS_ADDR is the kernel's: EACCES at 2.
#include "../behaviour.h"

static void sample_physical(void) {
    become_nobody();
    Attr attr = DUMMY;
    attr.sample_type = PERF_SAMPLE_PHYS_ADDR;
    EQUAL(open_error(attr), EACCES);
}

BEHAVIOUR(physical_addresses, A_MACHINE) {
    set_sysctl("perf_event_paranoid", 2);
    apart(sample_physical);
}
