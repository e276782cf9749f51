// execve takes the mapping away; the event can be mapped again, and read.
#include "../user_counters.h"

BEHAVIOUR(behind_exec, PMU | A_MACHINE) {
    if (behaviour_again) {
        int event = atoi(behaviour_again);
        struct perf_event_mmap_page* page = map(event, 0);
        CHECK(page != MAP_FAILED);
        million();
        COMPARE(counted_by_page(page), >=, 2000000);
        _exit(0);
    }
    int event = open_event(READABLE);
    CHECK(map(event, 0) != MAP_FAILED);
    enable(event);
    million();
    char text[16];
    snprintf(text, sizeof text, "%d", event);
    exec_again(text);
}
