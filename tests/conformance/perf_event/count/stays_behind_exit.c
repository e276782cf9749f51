// The count of a task that has ended can be read; ENABLE and DISABLE change nothing.
#include "../behaviour.h"

static void fault_thirty(void) { fault(30); }

BEHAVIOUR(stays_behind_exit, NOTHING) {
    struct child child = start(fault_thirty);
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.disabled = 0;
    int event = open_of(attr, child.pid, -1, -1);
    finish(child);
    uint64_t count = count_of(event);
    COMPARE(count, >=, 30);
    disable(event);
    enable(event);
    EQUAL(count_of(event), count);
}
