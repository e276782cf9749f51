// RESET of an event that counts is seen in its page.
#include "../behaviour.h"

BEHAVIOUR(reset_is_seen, PMU | A_MACHINE) {
    int event = open_event(READABLE);
    struct perf_event_mmap_page* page = map(event, 0);
    CHECK(page != MAP_FAILED);
    enable(event);
    million();
    reset(event);
    COMPARE(counted_by_page(page), <, 10000);
    million();
    COMPARE(counted_by_page(page), >=, 1000000);
}
