// DISABLE stops the count and keeps it; ENABLE goes on from there.
#include "../behaviour.h"

BEHAVIOUR(disable_keeps_the_count, PMU) {
    int event = open_event(INSTRUCTIONS);
    enable(event);
    million();
    disable(event);
    uint64_t count = count_of(event);
    million();
    EQUAL(count_of(event), count);
    enable(event);
    million();
    disable(event);
    COMPARE(count_of(event), >=, count + 1000000);
}
