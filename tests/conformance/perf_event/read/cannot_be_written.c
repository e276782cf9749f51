// write(2) is not for events: EINVAL.
#include "../behaviour.h"

BEHAVIOUR(cannot_be_written, NOTHING) {
    int event = open_event(DUMMY);
    uint64_t value = 1;
    FAILS(write(event, &value, sizeof value), EINVAL);
}
