// A child that was there before the event is not its concern.
#include "../behaviour.h"

static void fault_sixty(void) { fault(60); }

BEHAVIOUR(not_of_those_before, NOTHING) {
    struct child child = start(fault_sixty);
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.inherit = 1;
    int event = open_event(attr);
    enable(event);
    finish(child);
    COMPARE(count_of(event), <, 60);
}
