// Siblings whose leader was off and is closed can be read, and led by themselves.
#include "../behaviour.h"

BEHAVIOUR(closed_leader_that_was_off, NOTHING) {
    int leader = open_event(DUMMY);
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    int sibling = open_sibling(attr, leader), other;
    close(leader);
    EQUAL(count_of(sibling), 0);
    other = open_sibling(attr, sibling);
    SUCCEEDS(ioctl(sibling, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP));
    fault(10);
    COMPARE(count_of(sibling), >=, 10);
    COMPARE(count_of(other), >=, 10);
}
