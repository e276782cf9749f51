// A task of the same user's may be watched.
#include "../behaviour.h"

static void watch_own_child(void) {
    become_nobody();
    struct child child = start(NULL);
    SUCCEEDS(try_open(DUMMY, child.pid, -1, -1, 0));
    finish(child);
}

BEHAVIOUR(own_task, A_MACHINE) {
    set_sysctl("perf_event_paranoid", 2);
    apart(watch_own_child);
}
