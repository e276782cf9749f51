// What is off when a child begins is off there.
#include "../behaviour.h"

static void fault_some(void) { fault(40); }

BEHAVIOUR(disabled_is_inherited, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.inherit = 1;
    int event = open_event(attr);
    finish(start(fault_some));
    EQUAL(count_of(event), 0);
}
