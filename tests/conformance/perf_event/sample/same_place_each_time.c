// A loop that is sampled by a multiple of its length is sampled at few places.
#include "../behaviour.h"

BEHAVIOUR(same_place_each_time, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.sample_period = 10000;
    attr.sample_type = PERF_SAMPLE_IP;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 8);
    enable(event);
    million();
    disable(event);
    int samples = 0;
    Header* header;
    while ((header = next_of(ring, PERF_RECORD_SAMPLE))) {
        uint64_t ip = *(uint64_t*)(header + 1);
        samples += ip >= (uint64_t)million && ip < (uint64_t)million + 64;
    }
    COMPARE(samples, >=, 99);
}
