// IOC_REFRESH(0) adds nothing to the limit, and enables: an event without a limit goes on.
#include "../behaviour.h"

BEHAVIOUR(refresh_by_nothing, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.sample_period = 100000;
    int event = open_event(attr);
    CHECK(map(event, 1) != MAP_FAILED);
    SUCCEEDS(ioctl(event, PERF_EVENT_IOC_REFRESH, 0));
    million();
    disable(event);
    COMPARE(count_of(event), >=, 1000000);
}
