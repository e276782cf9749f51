// time_enabled and time_running of a PMU's event that is off are what read(2) says, but for its way off the counter.
#include "../behaviour.h"

BEHAVIOUR(times_of_the_page, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    int event = open_event(attr);
    struct perf_event_mmap_page* page = map(event, 1);
    CHECK(page != MAP_FAILED);
    enable(event);
    loops(100000);
    disable(event);
    uint64_t values[3];
    EQUAL(read(event, values, sizeof values), 24);
    COMPARE(page->time_enabled, >, 0);
    COMPARE(llabs((long long)(page->time_enabled - values[1])), <, 50000);
    COMPARE(llabs((long long)(page->time_running - values[2])), <, 50000);
}
