// IOC_PERIOD: samples come by the new period at once.
#include "../behaviour.h"

BEHAVIOUR(period_from_now_on, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.sample_period = 1000000000;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    million();
    uint64_t period = 100000;
    SUCCEEDS(ioctl(event, PERF_EVENT_IOC_PERIOD, &period));
    million();
    disable(event);
    int samples = remaining(ring, PERF_RECORD_SAMPLE);
    COMPARE(samples, >=, 10);
    COMPARE(samples, <=, 11);
}
