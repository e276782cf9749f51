// Accesses that are not aligned are the hardware's: no alignment fault, no emulation fault.
#include "../behaviour.h"

BEHAVIOUR(nothing_to_repair, NOTHING) {
    int alignment = open_event(SOFTWARE(ALIGNMENT_FAULTS)), emulation = open_event(SOFTWARE(EMULATION_FAULTS));
    static volatile char bytes[64];
    enable(alignment), enable(emulation);
    for (int i = 0; i < 10; i++) *(volatile uint64_t*)(bytes + 2 * i + 1) = i;
    disable(alignment), disable(emulation);
    EQUAL(count_of(alignment), 0);
    EQUAL(count_of(emulation), 0);
}
