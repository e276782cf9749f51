// The SIGTRAP of attr.sigtrap is no signal:signal_generate: perf_pending_task() has the task's recursion context.
#include "wakings.h"

static volatile int traps;

static void count_trap(int number) { (void)number, traps++; }

BEHAVIOUR(no_sigtrap_generated, TRACEFS) {
    int signals = tracepoint_event("signal/signal_generate", "sig == 5");  // SIGTRAP
    signal(SIGTRAP, count_trap);
    Attr attr = SOFTWARE(TASK_CLOCK);
    attr.sample_period = 2000000;  // ns
    attr.sigtrap = attr.remove_on_exec = 1;
    int event = open_event(attr);
    enable(signals);
    enable(event);
    while (!traps) loops(1000);
    disable(event);
    EQUAL(count_of(signals), 0);
    raise(SIGTRAP);
    EQUAL(count_of(signals), 1);
}
