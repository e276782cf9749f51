// PERF_SAMPLE_TID: process and thread.
#include "../behaviour.h"

BEHAVIOUR(tid, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_TID;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    fault(1);
    disable(event);
    uint32_t* ids = (uint32_t*)body_of(ring, PERF_RECORD_SAMPLE);
    EQUAL(ids[0], getpid());
    EQUAL(ids[1], getpid());
}
