// A breakpoint at an address of the kernel's needs CAP_SYS_ADMIN: EPERM. AArch64 has none of a task: EINVAL.
#include "../behaviour.h"

static void break_kernel(void) {
    become_nobody();
    Attr attr = attr_of(PERF_TYPE_BREAKPOINT, 0);
    attr.exclude_kernel = 0;
    attr.bp_type = HW_BREAKPOINT_W;
    attr.bp_len = 8;
    attr.bp_addr = 0xffffffff81000000;
#ifdef __x86_64__
    EQUAL(open_error(attr), EPERM);
#else
    EQUAL(open_error(attr), EINVAL);
#endif
}

BEHAVIOUR(breakpoint_in_the_kernel, SLOTS | A_MACHINE) {
    set_sysctl("perf_event_paranoid", -1);
    apart(break_kernel);
}
