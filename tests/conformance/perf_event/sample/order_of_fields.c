// The fields come in the order of the header's comment.
#include "../behaviour.h"

BEHAVIOUR(order_of_fields, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
                       PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    run_on(0);
    char* at = fresh(1);
    enable(event);
    touch(at, 1);
    disable(event);
    Header* header = next_record(ring);
    EQUAL(header->size, 8 + 10 * 8);
    uint64_t* body = (uint64_t*)(header + 1);
    EQUAL(body[0], id_of(event));
    EQUAL((uint32_t)body[2], getpid());
    EQUAL(body[4], at);
    EQUAL(body[5], id_of(event));
    EQUAL(body[6], id_of(event));
    EQUAL(body[7], 0);
    EQUAL(body[8], 1);
    EQUAL(body[9], 1);
}
