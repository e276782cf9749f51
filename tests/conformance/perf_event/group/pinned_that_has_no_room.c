// Pinned events that find no counter are in error: they read as an end of file, until ENABLE.
#include "../behaviour.h"

BEHAVIOUR(pinned_that_has_no_room, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.pinned = 1;
    enum { EVENTS = 64 };
    int events[EVENTS], in_error = 0;
    for (int i = 0; i < EVENTS; i++) events[i] = open_event(attr), enable(events[i]);
    million();
    uint64_t value;
    for (int i = 0; i < EVENTS; i++) in_error += read(events[i], &value, sizeof value) == 0;
    COMPARE(in_error, >, 0);
    COMPARE(in_error, <, EVENTS);
    EQUAL(read(events[EVENTS - 1], &value, sizeof value), 0);
    for (int i = 0; i < EVENTS - 1; i++) close(events[i]);
    enable(events[EVENTS - 1]);
    EQUAL(read(events[EVENTS - 1], &value, sizeof value), 8);
}
