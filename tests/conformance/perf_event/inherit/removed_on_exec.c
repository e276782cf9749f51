// What an inherited event with remove_on_exec has counted when its task calls execve is its parent's.
#include "../behaviour.h"

static void fault_and_exec(void) {
    fault(3);
    exec_again("child");
}

BEHAVIOUR(removed_on_exec, NOTHING) {
    if (behaviour_again) {
        fault(100);
        return;
    }
    struct child child;
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.inherit = attr.remove_on_exec = 1;
    int event = open_event(attr);
    enable(event);
    child = start(fault_and_exec);
    finish(child);
    disable(event);
    COMPARE(count_of(event), >=, 3);
    COMPARE(count_of(event), <, 100);
}
