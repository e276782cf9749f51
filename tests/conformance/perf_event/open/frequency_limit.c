// A frequency up to perf_event_max_sample_rate, and no higher: EINVAL.
#include "../behaviour.h"

BEHAVIOUR(frequency_limit, NOTHING) {
    long limit = number_in("/proc/sys/kernel/perf_event_max_sample_rate");
    Attr attr = SOFTWARE(CPU_CLOCK);
    attr.freq = 1;
    attr.sample_freq = limit;
    EQUAL(open_error(attr), 0);
    attr.sample_freq = limit + 1;
    EQUAL(open_error(attr), EINVAL);
}
