// Of a PMU's event that is off: index 0, and offset is the count.
#include "../behaviour.h"

BEHAVIOUR(offset_is_the_count, PMU) {
    int event = open_event(INSTRUCTIONS);
    struct perf_event_mmap_page* page = map(event, 1);
    CHECK(page != MAP_FAILED);
    enable(event);
    million();
    disable(event);
    EQUAL(page->index, 0);
    EQUAL(page->offset, count_of(event));
    reset(event);
    EQUAL(page->offset, 0);
}
