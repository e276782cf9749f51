// When the task has ended: POLLHUP, whatever there was.
#include "../behaviour.h"

BEHAVIOUR(poll_when_its_task_has_ended, NOTHING) {
    struct child child = start(NULL);
    int event = open_of(DUMMY, child.pid, -1, -1);
    CHECK(map(event, 1) != MAP_FAILED);
    EQUAL(ready(event), 0);
    finish(child);
    EQUAL(ready(event) & POLLHUP, POLLHUP);
}
