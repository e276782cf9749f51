// Counters that user space reads: RDPMC of x86-64, and Arm's registers.
#pragma once
#include "behaviour.h"

#ifdef __x86_64__
static inline uint64_t counter_value(unsigned index) {
    unsigned low, high;
    __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index));
    return (uint64_t)high << 32 | low;
}
#else
static inline uint64_t counter_value(unsigned index) {
    uint64_t value;
    __asm__ volatile("msr pmselr_el0, %0\n isb" ::"r"((uint64_t)index));
    if (index == 31)
        __asm__ volatile("mrs %0, pmccntr_el0" : "=r"(value));
    else
        __asm__ volatile("mrs %0, pmxevcntr_el0" : "=r"(value));
    return value;
}
#endif

// An event whose counter may be read so, once its page is mapped. Arm's kernel has to be told.
static inline Attr readable(void) {
    Attr attr = INSTRUCTIONS;
#ifdef __aarch64__
    set_sysctl("perf_user_access", 1);
    attr.config1 = 2;  // rdpmc
#endif
    return attr;
}

#define READABLE readable()

// What the event has counted, by the loop of the header's comment.
static inline uint64_t counted_by_page(volatile struct perf_event_mmap_page* page) {
    uint64_t count;
    unsigned sequence;
    do {
        sequence = page->lock;
        __asm__ volatile("" ::: "memory");
        unsigned index = page->index;
        count = page->offset;
        if (index) {
            int unused = 64 - page->pmc_width;
            count += (int64_t)(counter_value(index - 1) << unused) >> unused;
        }
        __asm__ volatile("" ::: "memory");
    } while (page->lock != sequence);
    return count;
}
