// Cycles pass.
#include "../behaviour.h"

BEHAVIOUR(counts_cycles, PMU) {
    int event = open_event(HARDWARE(CPU_CYCLES));
    enable(event);
    million();
    disable(event);
    COMPARE(count_of(event), >, 100000);
}
