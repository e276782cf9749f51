// write_backward: the newest record is where data_head is, and the others behind it.
#include "../behaviour.h"

BEHAVIOUR(backward, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_ADDR;
    attr.write_backward = 1;
    int event = open_event(attr);
    struct perf_event_mmap_page* page = mmap(NULL, 2 * page_size(), PROT_READ, MAP_SHARED, event, 0);
    CHECK(page != MAP_FAILED);
    char* at = fresh(300);
    enable(event);
    touch(at, 300);
    disable(event);
    EQUAL(page->data_head, -300UL * 16);
    SUCCEEDS(ioctl(event, PERF_EVENT_IOC_PAUSE_OUTPUT, 1));
    for (int i = 0; i < 200; i++) {
        uint64_t* record = (uint64_t*)((char*)page + page_size() + (page->data_head + 16 * i) % page_size());
        EQUAL(record[1], at + (299 - i) * page_size());
    }
}
