// A page that is shared with a child is copied when it is written: a fault.
#include "../behaviour.h"

BEHAVIOUR(page_faults_of_copies, NOTHING) {
    char* at = fresh(10);
    touch(at, 10);
    struct child child = start(NULL);
    int event = open_event(SOFTWARE(PAGE_FAULTS_MIN));
    enable(event);
    touch(at, 10);
    disable(event);
    EQUAL(count_of(event), 10);
    finish(child);
}
