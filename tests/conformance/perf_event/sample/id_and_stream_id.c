// PERF_SAMPLE_ID and PERF_SAMPLE_STREAM_ID of an event that nobody inherited: the id, twice.
#include "../behaviour.h"

BEHAVIOUR(id_and_stream_id, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    fault(1);
    disable(event);
    uint64_t* body = body_of(ring, PERF_RECORD_SAMPLE);
    EQUAL(body[0], id_of(event));
    EQUAL(body[1], id_of(event));
}
