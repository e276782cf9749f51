// An address of the kernel's is not for one that excludes the kernel: EINVAL; without that it
// needs a capability. AArch64 has none of a task at all.
#include "../behaviour.h"

BEHAVIOUR(kernel_address, SLOTS) {
    Attr attr = attr_of(PERF_TYPE_BREAKPOINT, 0);
    attr.bp_type = HW_BREAKPOINT_X;
    attr.bp_len = sizeof(long);
    attr.bp_addr = 0xffffffff81000000;
    EQUAL(open_error(attr), EINVAL);
    attr.exclude_kernel = 0;
    attr.bp_type = HW_BREAKPOINT_W;
#ifdef __x86_64__
    EQUAL(open_error(attr), geteuid() ? EPERM : 0);
#else
    EQUAL(open_error(attr), EINVAL);
#endif
}
