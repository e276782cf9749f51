// IOC_REFRESH enables the event for so many overflows more; the last one disables it.
#include "../behaviour.h"

BEHAVIOUR(refresh_limits, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    int event = open_event(attr);
    CHECK(map(event, 1) != MAP_FAILED);
    SUCCEEDS(ioctl(event, PERF_EVENT_IOC_REFRESH, 3));
    fault(10);
    EQUAL(count_of(event), 3);
    SUCCEEDS(ioctl(event, PERF_EVENT_IOC_REFRESH, 1));
    SUCCEEDS(ioctl(event, PERF_EVENT_IOC_REFRESH, 1));
    fault(10);
    EQUAL(count_of(event), 5);
}
