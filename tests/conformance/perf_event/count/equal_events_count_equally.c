// Four equal events of one group count the same.
#include "../behaviour.h"

BEHAVIOUR(equal_events_count_equally, PMU) {
    int events[4];
    events[0] = open_event(INSTRUCTIONS);
    Attr attr = INSTRUCTIONS;
    attr.disabled = 0;
    for (int i = 1; i < 4; i++) events[i] = open_sibling(attr, events[0]);
    enable(events[0]);
    million();
    disable(events[0]);
    COMPARE(count_of(events[0]), >=, 1000000);
    for (int i = 1; i < 4; i++) EQUAL(count_of(events[i]), count_of(events[0]));
}
