// What cannot be is not taken: EINVAL.
#include "../behaviour.h"

BEHAVIOUR(sysctls_have_bounds, A_MACHINE) {
    EQUAL(write_error("/proc/sys/kernel/perf_event_max_sample_rate", "0"), EINVAL);
    EQUAL(write_error("/proc/sys/kernel/perf_event_max_stack", "-1"), EINVAL);
    EQUAL(write_error("/proc/sys/kernel/perf_cpu_time_max_percent", "101"), EINVAL);
    EQUAL(write_error("/proc/sys/kernel/perf_event_paranoid", "much"), EINVAL);
    EQUAL(write_error("/proc/sys/kernel/perf_event_paranoid", "1"), 0);
    EQUAL(number_in("/proc/sys/kernel/perf_event_paranoid"), 1);
}
