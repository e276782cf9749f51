// PERF_RECORD_LOST has the id of the event that found no room, and a sample_id if it has one.
#include "../behaviour.h"

BEHAVIOUR(lost_is_told_first, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
    attr.sample_id_all = 1;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    char* at = fresh(300);
    enable(event);
    touch(at, 299);
    remaining(ring, PERF_RECORD_SAMPLE);
    touch(at + 299 * page_size(), 1);
    disable(event);
    Header* header = next_record(ring);
    EQUAL(header->type, PERF_RECORD_LOST);
    EQUAL(header->size, 8 + 16 + 16);
    EQUAL(*(uint64_t*)(header + 1), id_of(event));
}
