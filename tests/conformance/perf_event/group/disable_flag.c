// DISABLE with PERF_IOC_FLAG_GROUP, of any member, is for the whole group.
#include "../behaviour.h"

BEHAVIOUR(disable_flag, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.disabled = 0;
    int leader = open_event(attr), sibling = open_sibling(attr, leader);
    SUCCEEDS(ioctl(sibling, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP));
    uint64_t led = count_of(leader), with = count_of(sibling);
    fault(10);
    EQUAL(count_of(leader), led);
    EQUAL(count_of(sibling), with);
}
