// sample_id_all: each record ends with what identifies samples, PERF_SAMPLE_IDENTIFIER last.
#include "../behaviour.h"

BEHAVIOUR(sample_id, NOTHING) {
    Attr attr = DUMMY;
    attr.comm = attr.sample_id_all = 1;
    attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_ID |
                       PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_IP;
    run_on(0);
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    prctl(PR_SET_NAME, "name");
    disable(event);
    Header* header = next_of(ring, PERF_RECORD_COMM);
    CHECK(header);
    EQUAL(header->size, 8 + 8 + 8 + 6 * 8);
    uint64_t* id = (uint64_t*)((char*)header + header->size) - 6;
    EQUAL((uint32_t)id[0], getpid());
    EQUAL(id[0] >> 32, getpid());
    COMPARE(id[1], >, 0);
    EQUAL(id[2], id_of(event));
    EQUAL(id[3], id_of(event));
    EQUAL((uint32_t)id[4], 0);
    EQUAL(id[5], id_of(event));
}
