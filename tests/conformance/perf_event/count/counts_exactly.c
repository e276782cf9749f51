// What is between ENABLE and DISABLE is counted to the instruction: the same each time.
#include "../behaviour.h"

BEHAVIOUR(counts_exactly, PMU) {
    int event = open_event(INSTRUCTIONS);
    uint64_t first = 0;
    for (int i = 0; i < 10; i++) {
        reset(event);
        enable(event);
        million();
        disable(event);
        if (i == 0) first = count_of(event);
        EQUAL(count_of(event), first);
    }
    COMPARE(first, >=, 1000000);
    COMPARE(first, <, 1000100);
}
