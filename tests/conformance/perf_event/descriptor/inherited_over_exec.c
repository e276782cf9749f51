// execve keeps the descriptor, and the event goes on.
#include "../behaviour.h"

BEHAVIOUR(inherited_over_exec, NOTHING) {
    if (behaviour_again) {
        int event = atoi(behaviour_again);
        fault(20);
        COMPARE(count_of(event), >=, 20);
        _exit(0);
    }
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.disabled = 0;
    int event = open_event(attr);
    char text[16];
    snprintf(text, sizeof text, "%d", event);
    exec_again(text);
}
