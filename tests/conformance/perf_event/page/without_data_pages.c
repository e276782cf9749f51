// The first page alone: no records, but all it tells.
#include "../behaviour.h"

BEHAVIOUR(without_data_pages, NOTHING) {
    int event = open_event(DUMMY);
    struct perf_event_mmap_page* page = map(event, 0);
    CHECK(page != MAP_FAILED);
    EQUAL(page->data_size, 0);
}
