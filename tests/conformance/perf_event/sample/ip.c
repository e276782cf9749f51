// PERF_SAMPLE_IP: the instruction that was interrupted.
#include "../behaviour.h"

extern char faulting_store[], behind_the_store[];

BEHAVIOUR(ip, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    char* at = fresh(1);
    enable(event);
#ifdef __x86_64__
    __asm__ volatile(
        ".globl faulting_store, behind_the_store\n faulting_store: movb $1, (%0)\n behind_the_store: nop" ::"r"(at)
        : "memory");
#else
    __asm__ volatile(
        ".globl faulting_store, behind_the_store\n faulting_store: strb wzr, [%0]\n behind_the_store: nop" ::"r"(at)
        : "memory");
#endif
    disable(event);
    uint64_t* body = body_of(ring, PERF_RECORD_SAMPLE);
    EQUAL(body[0], faulting_store);
    EQUAL(body[1], at);
}
