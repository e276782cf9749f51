// PERF_SAMPLE_ADDR of a page fault: the address that was touched.
#include "../behaviour.h"

BEHAVIOUR(addr, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_ADDR;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    char* at = fresh(2);
    enable(event);
    ((volatile char*)at)[page_size() + 123] = 1;
    ((volatile char*)at)[45] = 1;
    disable(event);
    EQUAL(*body_of(ring, PERF_RECORD_SAMPLE), at + page_size() + 123);
    EQUAL(*body_of(ring, PERF_RECORD_SAMPLE), at + 45);
}
