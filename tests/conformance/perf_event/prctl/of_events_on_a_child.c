// ... also those that count another task.
#include "../behaviour.h"

static void fault_forty(void) { fault(40); }

BEHAVIOUR(of_events_on_a_child, NOTHING) {
    struct child child = start(fault_forty);
    int event = open_of(SOFTWARE(PAGE_FAULTS_MIN), child.pid, -1, -1);
    SUCCEEDS(prctl(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0));
    finish(child);
    COMPARE(count_of(event), >=, 40);
}
