// Whenever the page is written the lock grows by two.
#include "../behaviour.h"

BEHAVIOUR(lock_counts, NOTHING) {
    int event = open_event(DUMMY);
    struct perf_event_mmap_page* page = map(event, 1);
    CHECK(page != MAP_FAILED);
    unsigned before = page->lock;
    reset(event);
    EQUAL(page->lock, before + 2);
    reset(event);
    EQUAL(page->lock, before + 4);
}
