// What another task has opened on this one is not its own.
#include "../behaviour.h"

static void enable_own_and_fault(void) {
    SUCCEEDS(prctl(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0));
    fault(40);
}

BEHAVIOUR(not_of_others, NOTHING) {
    struct child child = start(enable_own_and_fault);
    int event = open_of(SOFTWARE(PAGE_FAULTS_MIN), child.pid, -1, -1);
    finish(child);
    EQUAL(count_of(event), 0);
}
