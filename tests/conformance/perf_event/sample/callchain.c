// PERF_SAMPLE_CALLCHAIN: a marker, the instruction, and where it returns to.
#include "../behaviour.h"

static __attribute__((noinline)) void touch_one(char* at) {
    *(volatile char*)at = 1;
    __asm__ volatile("" ::: "memory");
}

BEHAVIOUR(callchain, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    char* at = fresh(1);
    enable(event);
    touch_one(at);
    disable(event);
    uint64_t* body = body_of(ring, PERF_RECORD_SAMPLE);
    COMPARE(body[1], >=, 2);
    EQUAL(body[2], PERF_CONTEXT_USER);
    EQUAL(body[3], body[0]);
    COMPARE(body[0], >=, touch_one);
    COMPARE(body[0], <, (char*)touch_one + 64);
}
