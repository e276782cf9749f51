// Two threads, each with an event of its own.
#include "../user_counters.h"

static void* count_own(void* unused) {
    int event = open_event(READABLE);
    struct perf_event_mmap_page* page = map(event, 0);
    CHECK(page != MAP_FAILED);
    enable(event);
    for (int i = 0; i < 3; i++) {
        uint64_t before = counted_by_page(page);
        million();
        uint64_t passed = counted_by_page(page) - before;
        COMPARE(passed, >=, 1000000);
        COMPARE(passed, <, 1001000);
    }
    return unused;
}

BEHAVIOUR(by_threads, PMU | A_MACHINE) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, count_own, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}
