// A clock samples by its period, in ns of the task's own time.
#include "../behaviour.h"

BEHAVIOUR(clock_samples, NOTHING) {
    Attr attr = SOFTWARE(TASK_CLOCK);
    attr.sample_period = 1000000;
    attr.sample_type = PERF_SAMPLE_PERIOD;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 8);
    enable(event);
    while (count_of(event) < 20000000) million();
    disable(event);
    int samples = 0;
    Header* header;
    while ((header = next_of(ring, PERF_RECORD_SAMPLE))) {
        samples++;
        EQUAL(*(uint64_t*)(header + 1), 1000000);
    }
    COMPARE(samples, >=, 10);
    COMPARE(samples, <=, count_of(event) / 1000000 + 1);
}
