// An event of this task on another CPU has no index while the task is here.
#include "../user_counters.h"

BEHAVIOUR(on_another_cpu, PMU | A_MACHINE | TWO_CPUS) {
    run_on(0);
    int here = open_of(READABLE, 0, 0, -1), there = open_of(READABLE, 0, 1, -1);
    struct perf_event_mmap_page *first = map(here, 0), *second = map(there, 0);
    CHECK(first != MAP_FAILED && second != MAP_FAILED);
    enable(here), enable(there);
    COMPARE(first->index, >, 0);
    EQUAL(second->index, 0);
    run_on(1);
    EQUAL(first->index, 0);
    COMPARE(second->index, >, 0);
}
