// Orders to an event whose task has ended are taken, and change nothing.
#include "../behaviour.h"

BEHAVIOUR(of_an_ended_task, NOTHING) {
    struct child child = start(NULL);
    int event = open_of(SOFTWARE(PAGE_FAULTS_MIN), child.pid, -1, -1);
    finish(child);
    enable(event);
    reset(event);
    disable(event);
    EQUAL(count_of(event), 0);
}
