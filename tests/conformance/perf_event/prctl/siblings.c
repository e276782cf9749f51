// prctl: siblings are disabled and enabled, too, each by itself; the manual page says that only leaders are.
#include "../behaviour.h"

BEHAVIOUR(siblings, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    int leader = open_event(attr), sibling = open_sibling(attr, leader);
    enable(leader);
    fault(5);
    EQUAL(count_of(sibling), 0);
    SUCCEEDS(prctl(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0));
    fault(5);
    COMPARE(count_of(sibling), >=, 5);
    SUCCEEDS(prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0));
    uint64_t count = count_of(sibling);
    enable(leader);
    fault(5);
    EQUAL(count_of(sibling), count);
}
