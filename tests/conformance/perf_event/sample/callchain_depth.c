// sample_max_stack: a callchain has as many frames at most, and contexts besides.
#include "../behaviour.h"

static char* touched;

static __attribute__((noinline)) void descend(int depth) {
    if (depth)
        descend(depth - 1);
    else
        touch(touched, 1);
    __asm__ volatile("" ::: "memory");
}

BEHAVIOUR(callchain_depth, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_CALLCHAIN;
    attr.sample_max_stack = 3;
    int event = open_event(attr), found = 0;
    struct ring* ring = ring_of(event, 1);
    touched = fresh(1);
    descend(20);  // so that the stack is there
    touched = fresh(1);
    enable(event);
    descend(20);
    disable(event);
    uint64_t* chain = body_of(ring, PERF_RECORD_SAMPLE);
    for (uint64_t i = 1; i <= chain[0]; i++) found += chain[i] < PERF_CONTEXT_MAX;
    COMPARE(found, >=, 1);
    COMPARE(found, <=, 3);
}
