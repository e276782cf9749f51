// PERF_SAMPLE_IDENTIFIER is the first field, whatever else there is.
#include "../behaviour.h"

BEHAVIOUR(identifier, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_ID;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    fault(1);
    disable(event);
    uint64_t* body = body_of(ring, PERF_RECORD_SAMPLE);
    EQUAL(body[0], id_of(event));
    EQUAL(body[2], id_of(event));
    CHECK(body[1] != body[0]);
}
