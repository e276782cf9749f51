// IOC_MODIFY_ATTRIBUTES is for breakpoints: of the same type EOPNOTSUPP, of another EINVAL.
#include "../behaviour.h"

BEHAVIOUR(modify_others, NOTHING) {
    int event = open_event(DUMMY);
    Attr attr = DUMMY;
    FAILS(ioctl(event, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr), EOPNOTSUPP);
    attr.type = PERF_TYPE_HARDWARE;
    FAILS(ioctl(event, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr), EINVAL);
    FAILS(ioctl(event, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, NULL), EFAULT);
    attr.size = 3;
    FAILS(ioctl(event, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr), E2BIG);
}
