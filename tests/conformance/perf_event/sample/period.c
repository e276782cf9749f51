// PERF_SAMPLE_PERIOD of a software event with a period: one for each occurrence, of period 1.
#include "../behaviour.h"

BEHAVIOUR(period, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 4;
    attr.sample_type = PERF_SAMPLE_PERIOD;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    char* at = fresh(8);
    enable(event);
    touch(at, 8);
    disable(event);
    for (int i = 0; i < 8; i++) EQUAL(*body_of(ring, PERF_RECORD_SAMPLE), 1);
    EQUAL(remaining(ring, PERF_RECORD_SAMPLE), 0);
}
