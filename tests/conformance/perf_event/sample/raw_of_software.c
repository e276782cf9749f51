// PERF_SAMPLE_RAW of a software event: four bytes of length, and as many of padding as it takes to a multiple of 8.
#include "../behaviour.h"

BEHAVIOUR(raw_of_software, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_RAW;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    fault(1);
    disable(event);
    Header* header = next_record(ring);
    EQUAL(header->size, 16);
    EQUAL(*(uint32_t*)(header + 1), 4);
}
