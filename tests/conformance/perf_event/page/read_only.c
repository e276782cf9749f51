// A mapping that cannot be written is one, too.
#include "../behaviour.h"

BEHAVIOUR(read_only, NOTHING) {
    int event = open_event(DUMMY);
    struct perf_event_mmap_page* page = mmap(NULL, 2 * page_size(), PROT_READ, MAP_SHARED, event, 0);
    CHECK(page != MAP_FAILED);
    EQUAL(page->data_size, page_size());
}
