// A software event has no counter that user space could read.
#include "../behaviour.h"

BEHAVIOUR(software_has_no_counter, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.disabled = 0;
    struct perf_event_mmap_page* page = map(open_event(attr), 1);
    CHECK(page != MAP_FAILED);
    EQUAL(page->index, 0);
    EQUAL(page->cap_user_rdpmc, 0);
}
