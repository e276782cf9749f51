// Each event has an id of its own, which is not 0, and IOC_ID says the one that is read.
#include "../behaviour.h"

BEHAVIOUR(ids_differ, NOTHING) {
    Attr attr = DUMMY;
    attr.read_format = PERF_FORMAT_ID;
    uint64_t before = 0;
    for (int i = 0; i < 5; i++) {
        int event = open_event(attr);
        uint64_t values[2];
        EQUAL(read(event, values, sizeof values), 16);
        EQUAL(values[1], id_of(event));
        COMPARE(values[1], >, before);
        before = values[1];
    }
}
