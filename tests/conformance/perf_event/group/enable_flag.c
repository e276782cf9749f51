// ENABLE with PERF_IOC_FLAG_GROUP, of any member, is for the whole group.
#include "../behaviour.h"

BEHAVIOUR(enable_flag, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    int leader = open_event(attr), sibling = open_sibling(attr, leader);
    SUCCEEDS(ioctl(sibling, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP));
    fault(10);
    COMPARE(count_of(leader), >=, 10);
    COMPARE(count_of(sibling), >=, 10);
}
