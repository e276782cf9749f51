// Raw data of a tracepoint: EPERM at 0 without capabilities, but of system calls; counting it is nobody's secret.
#include "../behaviour.h"

static void sample_raw(void) {
    Attr attr = attr_of(PERF_TYPE_TRACEPOINT, number_in("/sys/kernel/tracing/events/sched/sched_switch/id"));
    Attr call = attr_of(PERF_TYPE_TRACEPOINT, number_in("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id"));
    attr.exclude_kernel = call.exclude_kernel = 0;
    become_nobody();
    EQUAL(open_error(attr), 0);
    attr.sample_type = call.sample_type = PERF_SAMPLE_RAW;
    attr.sample_period = call.sample_period = 1;
    EQUAL(open_error(attr), EPERM);
    EQUAL(open_error(call), 0);
}

BEHAVIOUR(tracepoint_data, TRACEFS | A_MACHINE) {
    set_sysctl("perf_event_paranoid", 0);
    apart(sample_raw);
}
