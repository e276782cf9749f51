// PERF_SAMPLE_PHYS_ADDR of a page fault that has been mended: where the page is, and its beginning was touched.
#include "../behaviour.h"

BEHAVIOUR(phys_addr, ROOT) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_ADDR | PERF_SAMPLE_PHYS_ADDR;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    char* at = fresh(1);
    enable(event);
    touch(at + 0, 1);
    disable(event);
    Header* header = next_record(ring);
    EQUAL(header->size, 8 + 16);
    uint64_t* body = (uint64_t*)(header + 1);
    EQUAL(body[0], at);
    EQUAL(body[1] % page_size(), 0);
}
