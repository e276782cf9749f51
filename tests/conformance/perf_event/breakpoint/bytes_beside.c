// Only the bytes that are watched count.
#include "../behaviour.h"

static volatile char beside[16] __attribute__((aligned(16)));

BEHAVIOUR(bytes_beside, SLOTS) {
    Attr attr = attr_of(PERF_TYPE_BREAKPOINT, 0);
    attr.bp_type = HW_BREAKPOINT_W;
    attr.bp_addr = (unsigned long)&beside[4];
    attr.bp_len = 4;
    int event = open_event(attr);
    enable(event);
    for (int i = 0; i < 16; i++) beside[i] = 1;
    disable(event);
    EQUAL(count_of(event), 4);
}
