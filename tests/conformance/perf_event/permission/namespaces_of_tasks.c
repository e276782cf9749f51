// attr.namespaces needs CAP_PERFMON: EACCES.
#include "../behaviour.h"

static void watch_namespaces(void) {
    become_nobody();
    Attr attr = DUMMY;
    attr.namespaces = 1;
    EQUAL(open_error(attr), EACCES);
}

BEHAVIOUR(namespaces_of_tasks, A_MACHINE) {
    set_sysctl("perf_event_paranoid", -1);
    apart(watch_namespaces);
}
