// IOC_REFRESH of a leader is the leader's alone: a sibling that is off stays off.
#include "../behaviour.h"

BEHAVIOUR(refresh_of_a_leader, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    int leader = open_event(attr), sibling = open_sibling(attr, leader);
    attr.disabled = 0;
    int enabled = open_sibling(attr, leader);
    char* at = fresh(8);
    SUCCEEDS(ioctl(leader, PERF_EVENT_IOC_REFRESH, 3));
    touch(at, 8);
    EQUAL(count_of(leader), 3);
    EQUAL(count_of(sibling), 0);
    COMPARE(count_of(enabled), >=, 2);  // it counts as long as its leader does
    COMPARE(count_of(enabled), <=, 3);
}
