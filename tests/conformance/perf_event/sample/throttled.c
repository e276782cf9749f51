// More samples in a tick than perf_event_max_sample_rate has: a record says so, and another when it goes on.
#include "../behaviour.h"

BEHAVIOUR(throttled, PMU | A_MACHINE) {
    set_sysctl("perf_event_max_sample_rate", 1000);
    Attr attr = INSTRUCTIONS;
    attr.sample_period = 1000;
    attr.sample_type = PERF_SAMPLE_ID;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 16);
    enable(event);
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do {
        million();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000 < 30);
    disable(event);
    int throttled = 0, unthrottled = 0, samples = 0;
    Header* record;
    while ((record = next_record(ring))) {
        throttled += record->type == PERF_RECORD_THROTTLE, unthrottled += record->type == PERF_RECORD_UNTHROTTLE;
        samples += record->type == PERF_RECORD_SAMPLE;
        if (record->type != PERF_RECORD_THROTTLE) continue;
        uint64_t* body = (uint64_t*)(record + 1);
        EQUAL(body[1], id_of(event));
        EQUAL(body[2], id_of(event));
    }
    COMPARE(throttled, >=, 2);
    COMPARE(unthrottled, >=, throttled - 1);
    COMPARE(samples, <, 300);
}
