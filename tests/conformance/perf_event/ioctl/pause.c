// IOC_PAUSE_OUTPUT needs a buffer; while it is paused records are lost, and then there is one that says how many.
#include "../behaviour.h"

BEHAVIOUR(pause, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_ADDR;
    int event = open_event(attr);
    FAILS(ioctl(event, PERF_EVENT_IOC_PAUSE_OUTPUT, 1), EINVAL);
    struct ring* ring = ring_of(event, 1);
    char* at = fresh(10);
    enable(event);
    touch(at, 1);
    SUCCEEDS(ioctl(event, PERF_EVENT_IOC_PAUSE_OUTPUT, 1));
    touch(at + page_size(), 5);
    SUCCEEDS(ioctl(event, PERF_EVENT_IOC_PAUSE_OUTPUT, 0));
    touch(at + 6 * page_size(), 1);
    disable(event);
    EQUAL(*body_of(ring, PERF_RECORD_SAMPLE), at);
    uint64_t* lost = body_of(ring, PERF_RECORD_LOST);
    EQUAL(lost[0], id_of(event));
    EQUAL(lost[1], 5);
    EQUAL(*body_of(ring, PERF_RECORD_SAMPLE), at + 6 * page_size());
}
