// A buffer that is mapped without PROT_WRITE is written on and on: the oldest records go.
#include "../behaviour.h"

BEHAVIOUR(overwritten, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_ADDR;
    int event = open_event(attr);
    struct perf_event_mmap_page* page = mmap(NULL, 2 * page_size(), PROT_READ, MAP_SHARED, event, 0);
    CHECK(page != MAP_FAILED);
    char* at = fresh(300);
    enable(event);
    touch(at, 300);
    disable(event);
    EQUAL(page->data_head, 300 * 16);
    uint64_t* last = (uint64_t*)((char*)page + page_size() + (page->data_head - 16) % page_size());
    EQUAL(last[1], at + 299 * page_size());
}
