// A frequency is a period for a clock: so many samples a second.
#include "../behaviour.h"

BEHAVIOUR(clock_frequency, NOTHING) {
    Attr attr = SOFTWARE(CPU_CLOCK);
    attr.freq = 1;
    attr.sample_freq = 1000;
    attr.sample_type = PERF_SAMPLE_PERIOD;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 8);
    enable(event);
    while (count_of(event) < 20000000) million();
    disable(event);
    EQUAL(*body_of(ring, PERF_RECORD_SAMPLE), 1000000);
    int samples = 1 + remaining(ring, PERF_RECORD_SAMPLE);
    COMPARE(samples, >=, 10);
    COMPARE(samples, <=, count_of(event) / 1000000 + 1);
}
