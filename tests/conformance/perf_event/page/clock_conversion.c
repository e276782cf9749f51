// Where the page says how, the counter of the CPU gives the time of perf's own clock.
#include "../behaviour.h"

static uint64_t counter(void) {
#ifdef __x86_64__
    unsigned low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
#else
    uint64_t value;
    __asm__ volatile("isb\n mrs %0, cntvct_el0" : "=r"(value));
    return value;
#endif
}

BEHAVIOUR(clock_conversion, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_TIME;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    struct perf_event_mmap_page* page = ring->page;
    if (!page->cap_user_time_zero) SKIP("no cap_user_time_zero");
    char* at = fresh(1);
    ring->at = page->data_head;  // what faulted until now is of no interest
    uint64_t before = counter();
    touch(at, 1);
    uint64_t after = counter(), times[2] = {before, after};
    for (int i = 0; i < 2; i++) {
        uint64_t ticks = times[i];
        if (page->cap_user_time_short) ticks = page->time_cycles + ((ticks - page->time_cycles) & page->time_mask);
        uint64_t quotient = ticks >> page->time_shift, rest = ticks & ((1UL << page->time_shift) - 1);
        times[i] = page->time_zero + quotient * page->time_mult + (rest * page->time_mult >> page->time_shift);
    }
    uint64_t time = *body_of(ring, PERF_RECORD_SAMPLE);
    COMPARE(time, >=, times[0] - 1000);
    COMPARE(time, <=, times[1] + 1000);
}
