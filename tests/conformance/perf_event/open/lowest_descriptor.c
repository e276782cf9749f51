// The new descriptor is the lowest that is free.
#include "../behaviour.h"

BEHAVIOUR(lowest_descriptor, NOTHING) {
    int first = open_event(DUMMY), second = open_event(DUMMY);
    close(first);
    EQUAL(open_event(DUMMY), first);
    CHECK(second != first);
}
