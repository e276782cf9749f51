// prctl: all events that this task has opened are disabled, and enabled.
#include "../behaviour.h"

BEHAVIOUR(disables_and_enables, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    int first = open_event(attr), second = open_event(attr);
    enable(first);
    fault(10);
    SUCCEEDS(prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0));
    uint64_t count = count_of(first);
    COMPARE(count, >=, 10);
    fault(10);
    EQUAL(count_of(first), count);
    EQUAL(count_of(second), 0);
    SUCCEEDS(prctl(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0));
    fault(10);
    COMPARE(count_of(first), >=, count + 10);
    COMPARE(count_of(second), >=, 10);
}
