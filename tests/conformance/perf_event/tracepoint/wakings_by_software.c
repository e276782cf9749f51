// What overflows of software events wake and signal is no tracepoint's occurrence; what a write to a pipe wakes is one.
#include "wakings.h"

static void work(void) { fault(1); }

static void for_a_while(void) { loops(20000000); }

BEHAVIOUR(wakings_by_software, TRACEFS) {
    Attr faults = SOFTWARE(PAGE_FAULTS);
    faults.sample_period = 1;
    wakes_uncounted(faults, work);
    Attr clock = SOFTWARE(TASK_CLOCK);
    clock.sample_period = 2000000;  // ns
    wakes_uncounted(clock, for_a_while);
    int ends[2];
    SUCCEEDS(pipe(ends));
    int reader = sleeper(ends[0]);
    char filter[40];
    snprintf(filter, sizeof filter, "pid == %d", reader);
    int wakings = tracepoint_event("sched/sched_waking", filter);
    int signals = tracepoint_event("signal/signal_generate", "sig == 29");  // SIGIO
    enable(wakings);
    enable(signals);
    CHECK(write(ends[1], "!", 1) == 1);
    raise(SIGIO);
    disable(signals);
    disable(wakings);
    EQUAL(wait_for(reader), 0);
    EQUAL(count_of(wakings), 1);
    EQUAL(count_of(signals), 1);
}
