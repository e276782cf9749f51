// A buffer that is too short: ENOSPC, and nothing is written.
#include "../behaviour.h"

BEHAVIOUR(too_little_room, NOTHING) {
    Attr attr = DUMMY;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
    int event = open_event(attr);
    uint64_t values[2] = {77, 77};
    FAILS(read(event, values, 15), ENOSPC);
    FAILS(read(event, values, 0), ENOSPC);
    EQUAL(values[0], 77);
}
