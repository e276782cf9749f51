// RESET of an event that counts is seen in its page: in the lower 32 bits, of which alone Arm's kernel is sure then.
#include "../user_counters.h"

BEHAVIOUR(reset_is_seen, PMU | A_MACHINE) {
    int event = open_event(READABLE);
    struct perf_event_mmap_page* page = map(event, 0);
    CHECK(page != MAP_FAILED);
    enable(event);
    million();
    reset(event);
    COMPARE((uint32_t)counted_by_page(page), <, 10000);
    million();
    COMPARE((uint32_t)counted_by_page(page), >=, 1000000);
}
