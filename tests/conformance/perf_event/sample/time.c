// PERF_SAMPLE_TIME: later samples are later; with use_clockid, by that clock.
#include "../behaviour.h"

BEHAVIOUR(time, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_TIME;
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC_RAW;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    struct timespec before, after;
    char* at = fresh(2);
    clock_gettime(CLOCK_MONOTONIC_RAW, &before);
    enable(event);
    touch(at, 2);
    clock_gettime(CLOCK_MONOTONIC_RAW, &after);
    disable(event);
    uint64_t first = *body_of(ring, PERF_RECORD_SAMPLE), last = 0;
    Header* record;
    while ((record = next_of(ring, PERF_RECORD_SAMPLE))) last = *(uint64_t*)(record + 1);
    COMPARE(first, >=, before.tv_sec * 1000000000ULL + before.tv_nsec);
    COMPARE(last, >, first);
    COMPARE(last, <=, after.tv_sec * 1000000000ULL + after.tv_nsec);
}
