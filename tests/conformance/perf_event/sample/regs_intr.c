// PERF_SAMPLE_REGS_INTR of what interrupts user mode: the same registers.
#include "../behaviour.h"

BEHAVIOUR(regs_intr, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR;
    attr.sample_regs_user = attr.sample_regs_intr = 0xff;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    fault(1);
    disable(event);
    uint64_t* body = body_of(ring, PERF_RECORD_SAMPLE);
    for (int i = 0; i < 9; i++) EQUAL(body[i], body[9 + i]);
}
