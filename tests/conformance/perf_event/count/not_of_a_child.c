// Without attr.inherit a child does not count.
#include "../behaviour.h"

BEHAVIOUR(not_of_a_child, PMU) {
    int event = open_event(INSTRUCTIONS);
    enable(event);
    struct child child = start(million);
    finish(child);
    disable(event);
    COMPARE(count_of(event), <, 500000);
}
