// The sysctls of perf_event are there, and numbers.
#include "../behaviour.h"

BEHAVIOUR(sysctls, NOTHING) {
    COMPARE(number_in("/proc/sys/kernel/perf_event_paranoid"), <=, 4);
    COMPARE(number_in("/proc/sys/kernel/perf_event_max_sample_rate"), >=, 1);
    COMPARE(number_in("/proc/sys/kernel/perf_event_mlock_kb"), >=, 0);
    COMPARE(number_in("/proc/sys/kernel/perf_event_max_stack"), >=, 0);
    COMPARE(number_in("/proc/sys/kernel/perf_event_max_contexts_per_stack"), >=, 0);
    COMPARE(number_in("/proc/sys/kernel/perf_cpu_time_max_percent"), <=, 100);
}
