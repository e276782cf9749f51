// Without attr.disabled an event counts at once.
#include "../behaviour.h"

BEHAVIOUR(starts_enabled, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.disabled = 0;
    int event = open_event(attr);
    million();
    COMPARE(count_of(event), >=, 1000000);
}
