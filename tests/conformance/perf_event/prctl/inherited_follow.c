// What inherited the event follows the one that was opened.
#include "../behaviour.h"

static int told[2];

static void fault_forty_when_told(void) {
    char byte;
    CHECK(read(told[0], &byte, 1) == 1);
    fault(40);
}

BEHAVIOUR(inherited_follow, NOTHING) {
    SUCCEEDS(pipe(told));
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.inherit = 1;
    int event = open_event(attr);
    enable(event);
    struct child child = start(fault_forty_when_told);
    let_go(child);
    SUCCEEDS(prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0));
    uint64_t count = count_of(event);
    EQUAL(write(told[1], "g", 1), 1);
    EQUAL(wait_for(child.pid), 0);
    EQUAL(count_of(event), count);
}
