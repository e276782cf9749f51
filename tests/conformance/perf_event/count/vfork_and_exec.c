// An inherited event follows vfork and execve.
#include "../behaviour.h"

BEHAVIOUR(vfork_and_exec, NOTHING) {
    if (behaviour_again) {
        fault(50);
        _exit(0);
    }
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.inherit = 1;
    int event = open_event(attr);
    enable(event);
    int pid = vfork();
    if (pid == 0) {
        execl("/proc/self/exe", "again", behaviour_name, "fault", NULL);
        _exit(3);
    }
    EQUAL(wait_for(pid), 0);
    disable(event);
    COMPARE(count_of(event), >=, 50);
}
