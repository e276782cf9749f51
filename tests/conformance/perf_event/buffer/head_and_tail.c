// data_head counts all bytes that were written; data_tail is the reader's.
#include "../behaviour.h"

BEHAVIOUR(head_and_tail, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_ADDR;  // 16 bytes
    int event = open_event(attr);
    struct perf_event_mmap_page* page = map(event, 1);
    CHECK(page != MAP_FAILED);
    char* at = fresh(3);
    enable(event);
    touch(at, 3);
    disable(event);
    EQUAL(page->data_head, 48);
    EQUAL(page->data_tail, 0);
    page->data_tail = 16;
    at = fresh(1);
    enable(event);
    touch(at, 1);
    disable(event);
    EQUAL(page->data_head, 64);
    EQUAL(page->data_tail, 16);
}
