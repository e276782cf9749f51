// The first page alone: no records, but all it tells.
#include "../behaviour.h"

BEHAVIOUR(without_data_pages, NOTHING) {
    int event = open_event(DUMMY);
    struct perf_event_mmap_page* page = map(event, 0);
    CHECK(page != MAP_FAILED);
    EQUAL(page->data_size, 0);
    EQUAL(page->size, offsetof(struct perf_event_mmap_page, __reserved));
    EQUAL(page->cap_bit0_is_deprecated, 1);
    unsigned before = page->lock;
    reset(event);
    COMPARE(page->lock, >, before);
}
