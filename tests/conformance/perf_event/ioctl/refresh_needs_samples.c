// IOC_REFRESH is for events that sample and are not inherited.
#include "../behaviour.h"

BEHAVIOUR(refresh_needs_samples, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    int event = open_event(attr);
    FAILS(ioctl(event, PERF_EVENT_IOC_REFRESH, 1), EINVAL);
    attr.sample_period = 1;
    attr.inherit = 1;
    FAILS(ioctl(open_event(attr), PERF_EVENT_IOC_REFRESH, 1), EINVAL);
    attr.inherit = 0;
    SUCCEEDS(ioctl(open_event(attr), PERF_EVENT_IOC_REFRESH, 1));
}
