// On Arm an event without the bit rdpmc has no index; nor has one that a sysctl does not allow. x86 asks for neither.
#include "../user_counters.h"

BEHAVIOUR(arm_must_be_asked, PMU | A_MACHINE) {
    Attr attr = INSTRUCTIONS;
    int event = open_event(attr);
    struct perf_event_mmap_page* page = map(event, 0);
    CHECK(page != MAP_FAILED);
    enable(event);
#ifdef __aarch64__
    EQUAL(page->index, 0);
    EQUAL(page->cap_user_rdpmc, 0);
    attr.config1 = 2;  // rdpmc
    set_sysctl("perf_user_access", 0);
    event = open_event(attr);
    page = map(event, 0);
    CHECK(page != MAP_FAILED);
    enable(event);
    EQUAL(page->index, 0);
    EQUAL(page->cap_user_rdpmc, 1);  // that it could
    set_sysctl("perf_user_access", 1);
    event = open_event(attr);
    page = map(event, 0);
    CHECK(page != MAP_FAILED);
    enable(event);
    COMPARE(page->index, >, 0);
    EQUAL(page->cap_user_rdpmc, 1);
#else
    COMPARE(page->index, >, 0);
    EQUAL(page->cap_user_rdpmc, 1);
#endif
}
