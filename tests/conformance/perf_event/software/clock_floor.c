// A period below 10 microseconds is one of 10 microseconds.
#include "../behaviour.h"

BEHAVIOUR(clock_floor, NOTHING) {
    Attr attr = SOFTWARE(CPU_CLOCK);
    attr.sample_period = 10;
    attr.sample_type = PERF_SAMPLE_IP;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 64);
    enable(event);
    while (count_of(event) < 10000000) loops(1000);
    disable(event);
    int samples = remaining(ring, PERF_RECORD_SAMPLE);
    COMPARE(samples, >=, 10);
    COMPARE(samples, <=, count_of(event) / 10000 + 1);
}
