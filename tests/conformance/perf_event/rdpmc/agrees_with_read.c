// It says what read(2) says, but for the way between both.
#include "../user_counters.h"

BEHAVIOUR(agrees_with_read, PMU | A_MACHINE) {
    int event = open_event(READABLE);
    struct perf_event_mmap_page* page = map(event, 0);
    CHECK(page != MAP_FAILED);
    enable(event);
    for (int i = 0; i < 5; i++) {
        loops(1000);
        uint64_t by_page = counted_by_page(page), by_read = count_of(event);
        COMPARE(by_read, >=, by_page);
        COMPARE(by_read - by_page, <, 2000);
    }
}
