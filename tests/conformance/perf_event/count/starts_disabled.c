// With attr.disabled nothing counts until ENABLE.
#include "../behaviour.h"

BEHAVIOUR(starts_disabled, PMU) {
    int event = open_event(INSTRUCTIONS);
    million();
    EQUAL(count_of(event), 0);
}
