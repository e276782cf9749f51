// ... but a software event gives one sample, and has the new period when the old one is over once more.
#include "../behaviour.h"

BEHAVIOUR(period_of_software, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 30;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    char* at = fresh(200);
    enable(event);
    touch(at, 10);
    uint64_t period = 5;
    SUCCEEDS(ioctl(event, PERF_EVENT_IOC_PERIOD, &period));
    touch(at + 10 * page_size(), 10);
    EQUAL(remaining(ring, PERF_RECORD_SAMPLE), 1);
    touch(at + 20 * page_size(), 100);
    int samples = remaining(ring, PERF_RECORD_SAMPLE);
    COMPARE(samples, >=, 15);
    COMPARE(samples, <=, 18);
}
