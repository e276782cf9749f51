// An event that waits for its turn has no index.
#include "../user_counters.h"

BEHAVIOUR(while_it_waits, PMU | A_MACHINE) {
    enum { EVENTS = 40 };
    struct perf_event_mmap_page* pages[EVENTS];
    for (int i = 0; i < EVENTS; i++) {
        int event = open_event(READABLE);
        pages[i] = map(event, 0);
        CHECK(pages[i] != MAP_FAILED);
        enable(event);
    }
    int on = 0, off = 0;
    for (int i = 0; i < EVENTS; i++) pages[i]->index ? on++ : off++;
    COMPARE(on, >=, 1);
    COMPARE(off, >=, 1);
}
