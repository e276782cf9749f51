// ... and when they are enabled after all the group does not count any more.
#include "../behaviour.h"

BEHAVIOUR(too_big_when_it_is_enabled, PMU) {
    Attr attr = INSTRUCTIONS;
    int leader = open_event(attr);
    for (int i = 0; i < 50; i++) open_sibling(attr, leader);
    SUCCEEDS(ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP));
    uint64_t count = count_of(leader);
    million();
    EQUAL(count_of(leader), count);
}
