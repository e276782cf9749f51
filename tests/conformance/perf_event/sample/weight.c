// PERF_SAMPLE_WEIGHT, PERF_SAMPLE_DATA_SRC and PERF_SAMPLE_TRANSACTION of a software event: nothing is known.
#include "../behaviour.h"

BEHAVIOUR(weight, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    fault(1);
    disable(event);
    Header* header = next_record(ring);
    EQUAL(header->size, 8 + 24);
    uint64_t* body = (uint64_t*)(header + 1);
    EQUAL(body[0], 0);
    EQUAL(body[1],
          (1ULL << 0) | (1ULL << 5) | (1ULL << 19) | (1ULL << 24) | (1ULL << 26) | (15ULL << 33));  // PERF_MEM_NA
    EQUAL(body[2], 0);
}
