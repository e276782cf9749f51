// PERF_SAMPLE_REGS_USER: the ABI, and the registers of the mask, the lowest bit first.
#include "../behaviour.h"

BEHAVIOUR(regs_user, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_REGS_USER;
#ifdef __x86_64__
    attr.sample_regs_user = 1UL << 0 | 1UL << 8 | 1UL << 10;  // AX, IP, CS
#else
    attr.sample_regs_user = 1UL << 0 | 1UL << 31 | 1UL << 32;  // X0, SP, PC
#endif
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    char* at = fresh(1);
    enable(event);
#ifdef __x86_64__
    __asm__ volatile("mov $0x1234567, %%rax\n movb $1, (%0)" ::"r"(at) : "rax", "memory");
#else
    __asm__ volatile("mov x0, #0x4567\n movk x0, #0x123, lsl 16\n strb wzr, [%0]" ::"r"(at) : "x0", "memory");
#endif
    disable(event);
    uint64_t* body = body_of(ring, PERF_RECORD_SAMPLE);
    EQUAL(body[1], PERF_SAMPLE_REGS_ABI_64);
    EQUAL(body[2], 0x1234567);
#ifdef __x86_64__
    EQUAL(body[3], body[0]);
    EQUAL(body[4], 0x33);
#else
    EQUAL(body[4], body[0]);
#endif
}
