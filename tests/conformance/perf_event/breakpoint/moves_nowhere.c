// ... not to what cannot be: EINVAL.
#include "../behaviour.h"

static volatile uint64_t unmoved;

BEHAVIOUR(moves_nowhere, SLOTS) {
    Attr attr = attr_of(PERF_TYPE_BREAKPOINT, 0);
    attr.bp_type = HW_BREAKPOINT_W;
    attr.bp_addr = (unsigned long)&unmoved;
    attr.bp_len = 8;
    int event = open_event(attr);
    attr.bp_len = 9;
    FAILS(ioctl(event, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr), EINVAL);
}
