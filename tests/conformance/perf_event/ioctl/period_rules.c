// IOC_PERIOD is for events that sample; a period is not 0, has 63 bits, and a frequency is not above the limit.
#include "../behaviour.h"

BEHAVIOUR(period_rules, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    int plain = open_event(attr);
    uint64_t period = 5, none = 0, long_one = 1UL << 63;
    FAILS(ioctl(plain, PERF_EVENT_IOC_PERIOD, &period), EINVAL);
    attr.sample_period = 1;
    int event = open_event(attr);
    FAILS(ioctl(event, PERF_EVENT_IOC_PERIOD, &none), EINVAL);
    FAILS(ioctl(event, PERF_EVENT_IOC_PERIOD, &long_one), EINVAL);
    FAILS(ioctl(event, PERF_EVENT_IOC_PERIOD, NULL), EFAULT);
    SUCCEEDS(ioctl(event, PERF_EVENT_IOC_PERIOD, &period));
    attr.freq = 1;
    event = open_event(attr);
    uint64_t frequency = number_in("/proc/sys/kernel/perf_event_max_sample_rate") + 1;
    FAILS(ioctl(event, PERF_EVENT_IOC_PERIOD, &frequency), EINVAL);
}
