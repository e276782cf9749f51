// dup(2): one event, which lives until the last descriptor is closed.
#include "../behaviour.h"

BEHAVIOUR(duplicated, NOTHING) {
    int event = open_event(SOFTWARE(PAGE_FAULTS_MIN)), copy = dup(event);
    enable(copy);
    fault(10);
    EQUAL(id_of(event), id_of(copy));
    close(event);
    COMPARE(count_of(copy), >=, 10);
}
