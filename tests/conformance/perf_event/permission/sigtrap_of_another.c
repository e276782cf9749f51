// sigtrap signals the task that is watched: that must be one that may be traced.
#include "../behaviour.h"

static int parents_pid;

static void trap_parent(void) {
    become_nobody();
    Attr attr = DUMMY;
    attr.sigtrap = attr.remove_on_exec = 1;
    FAILS(try_open(attr, parents_pid, -1, -1, 0), EACCES);
    SUCCEEDS(try_open(attr, 0, -1, -1, 0));
}

BEHAVIOUR(sigtrap_of_another, A_MACHINE) {
    parents_pid = getpid();
    set_sysctl("perf_event_paranoid", -1);
    apart(trap_parent);
}
