// HW_BREAKPOINT_X counts each time that the instruction is executed.
#include "../behaviour.h"

static __attribute__((noinline, noclone)) void called_ten_times(void) { __asm__ volatile(""); }

BEHAVIOUR(breakpoint_executions, SLOTS) {
    Attr attr = attr_of(PERF_TYPE_BREAKPOINT, 0);
    attr.bp_type = HW_BREAKPOINT_X;
    attr.bp_addr = (unsigned long)called_ten_times;
    attr.bp_len = sizeof(long);
    int event = open_event(attr);
    enable(event);
    for (int i = 0; i < 10; i++) called_ten_times();
    disable(event);
    called_ten_times();
    EQUAL(count_of(event), 10);
}
