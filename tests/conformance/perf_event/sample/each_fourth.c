// A period of 4 without PERF_SAMPLE_PERIOD: a sample for each fourth occurrence.
#include "../behaviour.h"

BEHAVIOUR(each_fourth, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 4;
    attr.sample_type = PERF_SAMPLE_ADDR;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    char* at = fresh(8);
    enable(event);
    touch(at, 8);
    disable(event);
    EQUAL(*body_of(ring, PERF_RECORD_SAMPLE), at + 3 * page_size());
    EQUAL(*body_of(ring, PERF_RECORD_SAMPLE), at + 7 * page_size());
    EQUAL(remaining(ring, PERF_RECORD_SAMPLE), 0);
}
