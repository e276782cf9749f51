// A pinned event in error stays so when it is disabled, whatever the manual page says: only ENABLE ends that.
#include "../behaviour.h"

BEHAVIOUR(pinned_in_error, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.pinned = 1;
    enum { EVENTS = 64 };
    int events[EVENTS];
    for (int i = 0; i < EVENTS; i++) events[i] = open_event(attr), enable(events[i]);
    million();
    uint64_t value;
    int last = events[EVENTS - 1];
    EQUAL(read(last, &value, sizeof value), 0);
    disable(last);
    EQUAL(read(last, &value, sizeof value), 0);
    for (int i = 0; i < EVENTS - 1; i++) close(events[i]);
    million();
    EQUAL(read(last, &value, sizeof value), 0);
    enable(last);
    million();
    EQUAL(read(last, &value, sizeof value), 8);
    COMPARE(value, >=, 1000000);
    disable(last);
    EQUAL(read(last, &value, sizeof value), 8);
}
