// The page of an event of another task, which is not on this CPU, has no index: offset is what it has counted.
#include "../user_counters.h"

static void two_million(void) { million(), million(); }

BEHAVIOUR(of_another_task, PMU | A_MACHINE) {
    struct child child = start(two_million);
    int event = open_of(READABLE, child.pid, -1, -1);
    enable(event);
    struct perf_event_mmap_page* page = map(event, 0);
    CHECK(page != MAP_FAILED);
    finish(child);
    EQUAL(page->index, 0);
    EQUAL(page->offset, count_of(event));
    COMPARE(page->offset, >=, 2000000);
}
