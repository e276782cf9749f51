// IOC_ID writes 8 bytes, or EFAULT.
#include "../behaviour.h"

BEHAVIOUR(id_to_nowhere, NOTHING) {
    int event = open_event(DUMMY);
    uint64_t place[2] = {~0UL, ~0UL};
    SUCCEEDS(ioctl(event, PERF_EVENT_IOC_ID, place));
    CHECK(place[0] != ~0UL);
    EQUAL(place[1], ~0UL);
    FAILS(ioctl(event, PERF_EVENT_IOC_ID, NULL), EFAULT);
}
