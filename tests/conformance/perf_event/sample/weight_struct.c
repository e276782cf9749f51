// PERF_SAMPLE_WEIGHT_STRUCT has eight bytes, too.
#include "../behaviour.h"

BEHAVIOUR(weight_struct, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_TIME;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    fault(1);
    disable(event);
    Header* header = next_record(ring);
    EQUAL(header->size, 8 + 16);
    EQUAL(((uint64_t*)(header + 1))[1], 0);
}
