// attr.freq: the period finds its way to so many samples a second.
#include "../behaviour.h"

BEHAVIOUR(frequency, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.freq = 1;
    attr.sample_freq = 1000;
    attr.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 8);
    enable(event);
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    long ms;
    do {
        million();
        clock_gettime(CLOCK_MONOTONIC, &now);
        ms = (now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000;
    } while (ms < 100);
    disable(event);
    int samples = remaining(ring, PERF_RECORD_SAMPLE);
    COMPARE(samples, >=, 50);
    COMPARE(samples, <=, 300);
}
