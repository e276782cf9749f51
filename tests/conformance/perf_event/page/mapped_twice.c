// A second mapping has the same size, and is the same memory.
#include "../behaviour.h"

BEHAVIOUR(mapped_twice, NOTHING) {
    int event = open_event(DUMMY);
    struct perf_event_mmap_page *first = map(event, 2), *second = map(event, 2);
    CHECK(first != MAP_FAILED && second != MAP_FAILED);
    FAILS((long)map(event, 1), EINVAL);
    FAILS((long)map(event, 4), EINVAL);
    first->data_tail = 88;
    EQUAL(second->data_tail, 88);
}
