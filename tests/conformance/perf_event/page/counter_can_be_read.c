// A counter that user space may read: its value and offset are what read(2) says.
#include "../behaviour.h"

#ifdef __x86_64__
static uint64_t counter_value(unsigned index) {
    unsigned low, high;
    __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index));
    return (uint64_t)high << 32 | low;
}
#else
static uint64_t counter_value(unsigned index) {
    uint64_t value;
    __asm__ volatile("msr pmselr_el0, %0\n isb" ::"r"((uint64_t)index));
    if (index == 31)
        __asm__ volatile("mrs %0, pmccntr_el0" : "=r"(value));
    else
        __asm__ volatile("mrs %0, pmxevcntr_el0" : "=r"(value));
    return value;
}
#endif

BEHAVIOUR(counter_can_be_read, PMU | A_MACHINE) {
    Attr attr = INSTRUCTIONS;
#ifdef __aarch64__
    set_sysctl("perf_user_access", 1);
    attr.config1 = 2;  // rdpmc
#endif
    int event = open_event(attr);
    struct perf_event_mmap_page* page = map(event, 1);
    CHECK(page != MAP_FAILED);
    enable(event);
    EQUAL(page->cap_user_rdpmc, 1);
    COMPARE(page->index, >, 0);
    COMPARE(page->pmc_width, >=, 32);
    COMPARE(page->pmc_width, <=, 64);
    int unused = 64 - page->pmc_width;
    uint64_t first = page->offset + ((int64_t)(counter_value(page->index - 1) << unused) >> unused);
    million();
    uint64_t second = page->offset + ((int64_t)(counter_value(page->index - 1) << unused) >> unused);
    disable(event);
    COMPARE(second - first, >=, 1000000);
    COMPARE(second - first, <, 1000100);
    COMPARE(count_of(event), >=, second);
    COMPARE(count_of(event), <, second + 1000);
    EQUAL(page->index, 0);
}
