// ENABLE of an event that counts, and DISABLE of one that does not, change nothing.
#include "../behaviour.h"

BEHAVIOUR(enable_twice, PMU) {
    int event = open_event(INSTRUCTIONS);
    disable(event);
    enable(event);
    enable(event);
    million();
    disable(event);
    disable(event);
    COMPARE(count_of(event), >=, 1000000);
    COMPARE(count_of(event), <, 1001000);
}
