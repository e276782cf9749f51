// PERF_SAMPLE_READ: what read(2) would have said.
#include "../behaviour.h"

BEHAVIOUR(read, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_READ;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    char* at = fresh(3);
    enable(event);
    touch(at, 3);
    disable(event);
    for (unsigned i = 1; i <= 3; i++) {
        uint64_t* body = body_of(ring, PERF_RECORD_SAMPLE);
        EQUAL(body[0], i);
        COMPARE(body[1], >, 0);
        EQUAL(body[2], body[1]);
        EQUAL(body[3], id_of(event));
    }
}
