// Two events that write one buffer, told apart by their ids; -1 ends that.
#include "../behaviour.h"

BEHAVIOUR(set_output_shares, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_IDENTIFIER;
    int first = open_event(attr), second = open_event(attr);
    struct ring* ring = ring_of(first, 1);
    SUCCEEDS(ioctl(second, PERF_EVENT_IOC_SET_OUTPUT, first));
    char* at = fresh(3);
    enable(second);
    touch(at, 1);
    disable(second);
    EQUAL(*body_of(ring, PERF_RECORD_SAMPLE), id_of(second));
    enable(first);
    touch(at + page_size(), 1);
    disable(first);
    EQUAL(*body_of(ring, PERF_RECORD_SAMPLE), id_of(first));
    SUCCEEDS(ioctl(second, PERF_EVENT_IOC_SET_OUTPUT, -1L));
    enable(second);
    touch(at + 2 * page_size(), 1);
    EQUAL(remaining(ring, PERF_RECORD_SAMPLE), 0);
}
