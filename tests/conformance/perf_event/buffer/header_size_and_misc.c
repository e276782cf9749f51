// A sample's header: its type, its size, and the mode that was interrupted.
#include "../behaviour.h"

BEHAVIOUR(header_size_and_misc, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_TIME;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    fault(1);
    disable(event);
    Header* header = next_record(ring);
    EQUAL(header->type, PERF_RECORD_SAMPLE);
    EQUAL(header->size, 16);
    EQUAL(header->misc & PERF_RECORD_MISC_CPUMODE_MASK, PERF_RECORD_MISC_USER);
}
