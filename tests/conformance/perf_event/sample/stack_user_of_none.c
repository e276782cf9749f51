// PERF_SAMPLE_STACK_USER of no bytes: a size of 0, and nothing behind it.
#include "../behaviour.h"

BEHAVIOUR(stack_user_of_none, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_ADDR | PERF_SAMPLE_STACK_USER;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    char* at = fresh(1);
    enable(event);
    touch(at, 1);
    disable(event);
    Header* record = next_of(ring, PERF_RECORD_SAMPLE);
    CHECK(record);
    EQUAL(record->size, sizeof *record + 16);
    uint64_t* body = (uint64_t*)(record + 1);
    EQUAL(body[0], at);
    EQUAL(body[1], 0);
}
