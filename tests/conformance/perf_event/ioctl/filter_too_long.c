// A filter has less than a page: EINVAL.
#include "../behaviour.h"

BEHAVIOUR(filter_too_long, NOTHING) {
    static char text[8192];
    memset(text, 'a', sizeof text - 1);
    FAILS(ioctl(open_event(DUMMY), PERF_EVENT_IOC_SET_FILTER, text), EINVAL);
}
