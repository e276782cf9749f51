// An inherited breakpoint is every thread's.
#include "../behaviour.h"

static volatile uint64_t threads_word;

static void* write_five(void* unused) {
    for (int i = 0; i < 5; i++) threads_word = i;
    return unused;
}

BEHAVIOUR(of_threads, SLOTS) {
    Attr attr = attr_of(PERF_TYPE_BREAKPOINT, 0);
    attr.bp_type = HW_BREAKPOINT_W;
    attr.bp_addr = (unsigned long)&threads_word;
    attr.bp_len = 8;
    attr.inherit = 1;
    int event = open_event(attr);
    enable(event);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, write_five, NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    disable(event);
    EQUAL(count_of(event), 15);
}
