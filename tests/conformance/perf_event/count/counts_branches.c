// Branches: one for each turn of a loop, and those of the calls around it.
#include "../behaviour.h"

BEHAVIOUR(counts_branches, PMU) {
    int event = open_event(HARDWARE(BRANCH_INSTRUCTIONS));
    enable(event);
    million();
    disable(event);
    COMPARE(count_of(event), >=, 499999);
    COMPARE(count_of(event), <, 500050);
}
