// RESET: the count is 0, and goes on if it was going.
#include "../behaviour.h"

BEHAVIOUR(reset, PMU) {
    int event = open_event(INSTRUCTIONS);
    enable(event);
    million();
    reset(event);
    COMPARE(count_of(event), <, 10000);
    million();
    disable(event);
    COMPARE(count_of(event), >=, 1000000);
    reset(event);
    EQUAL(count_of(event), 0);
}
