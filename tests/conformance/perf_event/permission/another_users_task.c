// A task of another user's: EACCES, whatever perf_event_paranoid says.
#include "../behaviour.h"

static int roots_pid;

static void watch_roots(void) {
    become_nobody();
    FAILS(try_open(DUMMY, roots_pid, -1, -1, 0), EACCES);
}

BEHAVIOUR(another_users_task, A_MACHINE) {
    roots_pid = getpid();
    for (int paranoid = -1; paranoid <= 2; paranoid++) {
        set_sysctl("perf_event_paranoid", paranoid);
        apart(watch_roots);
    }
}
