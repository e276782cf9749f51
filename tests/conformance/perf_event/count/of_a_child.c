// An event of another process, opened while it waits.
#include "../behaviour.h"

BEHAVIOUR(of_a_child, PMU) {
    struct child child = start(million);
    Attr attr = INSTRUCTIONS;
    attr.disabled = 0;
    int event = open_of(attr, child.pid, -1, -1);
    finish(child);
    COMPARE(count_of(event), >=, 1000000);
    COMPARE(count_of(event), <, 1100000);
}
