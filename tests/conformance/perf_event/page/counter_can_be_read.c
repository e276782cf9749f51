// A counter that user space may read: its value and offset are what read(2) says.
#include "../user_counters.h"

BEHAVIOUR(counter_can_be_read, PMU | A_MACHINE) {
    int event = open_event(READABLE);
    struct perf_event_mmap_page* page = map(event, 1);
    CHECK(page != MAP_FAILED);
    enable(event);
    EQUAL(page->cap_user_rdpmc, 1);
    COMPARE(page->index, >, 0);
    COMPARE(page->pmc_width, >=, 32);
    COMPARE(page->pmc_width, <=, 64);
    uint64_t first = counted_by_page(page);
    million();
    uint64_t second = counted_by_page(page);
    disable(event);
    COMPARE(second - first, >=, 1000000);
    COMPARE(second - first, <, 1000200);
    COMPARE(count_of(event), >=, second);
    COMPARE(count_of(event), <, second + 1000);
    EQUAL(page->index, 0);
}
