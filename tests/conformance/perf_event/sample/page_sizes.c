// PERF_SAMPLE_DATA_PAGE_SIZE and PERF_SAMPLE_CODE_PAGE_SIZE: of the instruction's page, and of the address's.
#include "../behaviour.h"

BEHAVIOUR(page_sizes, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    fault(1);
    disable(event);
    Header* header = next_record(ring);
    EQUAL(header->size, 8 + 16);
    EQUAL(((uint64_t*)(header + 1))[1], page_size());
}
