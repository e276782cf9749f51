// RESET is for one, with PERF_IOC_FLAG_GROUP for the whole group, whoever is asked.
#include "../behaviour.h"

BEHAVIOUR(reset_flag, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.disabled = 0;
    int leader = open_event(attr), sibling = open_sibling(attr, leader);
    fault(10);
    SUCCEEDS(ioctl(leader, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP));
    reset(leader);
    EQUAL(count_of(leader), 0);
    COMPARE(count_of(sibling), >=, 10);
    SUCCEEDS(ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP));
    fault(10);
    SUCCEEDS(ioctl(leader, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP));
    SUCCEEDS(ioctl(sibling, PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP));
    EQUAL(count_of(leader), 0);
    EQUAL(count_of(sibling), 0);
}
