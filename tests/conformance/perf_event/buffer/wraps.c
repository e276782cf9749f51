// A record may begin at the end of the buffer and go on at its beginning.
#include "../behaviour.h"

BEHAVIOUR(wraps, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type =
        PERF_SAMPLE_ADDR | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;  // 48
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    char* at = fresh(400);
    enable(event);
    for (int i = 0; i < 400; i++) {
        touch(at + i * page_size(), 1);
        uint64_t* sample;
        do {
            sample = body_of(ring, PERF_RECORD_SAMPLE);
            EQUAL((uint32_t)sample[0], getpid());
            EQUAL(sample[4], 1);
        } while (sample[2] != (uint64_t)at + i * page_size());
    }
}
