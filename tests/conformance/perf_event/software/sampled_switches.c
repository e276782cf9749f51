// A switch can be sampled: in the kernel, where the task leaves.
#include "../behaviour.h"

BEHAVIOUR(sampled_switches, ROOT) {
    Attr attr = SOFTWARE(CONTEXT_SWITCHES);
    attr.exclude_kernel = 0;
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    for (int i = 0; i < 3; i++) sleep_ms(1);
    disable(event);
    int samples = 0;
    Header* header;
    while ((header = next_of(ring, PERF_RECORD_SAMPLE))) {
        samples++;
        EQUAL(*(uint32_t*)(header + 1), getpid());
    }
    EQUAL(samples, count_of(event));
    COMPARE(samples, >=, 3);
}
