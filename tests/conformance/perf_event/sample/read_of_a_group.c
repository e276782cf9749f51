// PERF_SAMPLE_READ with PERF_FORMAT_GROUP: all of the group, at each sample of its leader.
#include "../behaviour.h"

BEHAVIOUR(read_of_a_group, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_READ;
    attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
    int leader = open_event(attr);
    struct ring* ring = ring_of(leader, 1);
    Attr other = DUMMY;
    other.disabled = 0;
    other.read_format = attr.read_format;
    int sibling = open_sibling(other, leader);
    enable(leader);
    fault(1);
    disable(leader);
    uint64_t* body = body_of(ring, PERF_RECORD_SAMPLE);
    EQUAL(body[0], 2);
    EQUAL(body[1], 1);
    EQUAL(body[2], id_of(leader));
    EQUAL(body[3], 0);
    EQUAL(body[4], id_of(sibling));
}
