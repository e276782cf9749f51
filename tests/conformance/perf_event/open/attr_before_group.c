// The attr is looked at before the group's descriptor.
#include "../behaviour.h"

BEHAVIOUR(attr_before_group, NOTHING) {
    FAILS(syscall(SYS_perf_event_open, NULL, 0, -1, 9999, 0), EFAULT);
    Attr attr = DUMMY;
    attr.__reserved_2 = 1;
    FAILS(try_open(attr, 0, -1, 9999, 0), EINVAL);
}
