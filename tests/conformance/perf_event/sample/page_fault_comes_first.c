// PAGE_FAULTS is counted before anything is done about the fault: the page is not there yet, and has no address or
// size. PAGE_FAULTS_MIN is counted when it is mended.
#include "../behaviour.h"

BEHAVIOUR(page_fault_comes_first, ROOT) {
    static const int KINDS[] = {PERF_COUNT_SW_PAGE_FAULTS, PERF_COUNT_SW_PAGE_FAULTS_MIN};
    for (int kind = 0; kind < 2; kind++) {
        Attr attr = SOFTWARE(PAGE_FAULTS);
        attr.config = KINDS[kind];
        attr.sample_period = 1;
        attr.sample_type = PERF_SAMPLE_ADDR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_DATA_PAGE_SIZE;
        int event = open_event(attr);
        struct ring* ring = ring_of(event, 1);
        char* at = fresh(1);
        enable(event);
        touch(at, 1);
        disable(event);
        Header* header = next_record(ring);
        EQUAL(header->size, 8 + 24);
        uint64_t* body = (uint64_t*)(header + 1);
        EQUAL(body[0], at);
        EQUAL(body[1] != 0, kind);
        EQUAL(body[2], kind ? page_size() : 0);
    }
}
