// More events than counters take turns: time_running is less than time_enabled, and the scaled count is near.
#include "../behaviour.h"

BEHAVIOUR(multiplexed, PMU) {
    enum { EVENTS = 40, LEAST_MS = 280 };
    int events[EVENTS];
    Attr attr = INSTRUCTIONS;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    for (int i = 0; i < EVENTS; i++) events[i] = open_event(attr);
    attr.pinned = 1;
    int always = open_event(attr);
    enable(always);
    for (int i = 0; i < EVENTS; i++) enable(events[i]);
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do {
        million();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000 < LEAST_MS);
    int waited = 0, ran = 0;
    uint64_t all = count_of(always);
    for (int i = 0; i < EVENTS; i++) {
        uint64_t values[3];
        EQUAL(read(events[i], values, sizeof values), 24);
        COMPARE(values[2], <=, values[1]);
        waited += values[2] < values[1];
        if (values[2] == 0) continue;
        ran++;
        uint64_t scaled = (double)values[0] * values[1] / values[2];
        COMPARE(scaled, >, all / 10 * 8);
        COMPARE(scaled, <, all / 10 * 12);
    }
    COMPARE(waited, >, EVENTS / 2);
    COMPARE(ran, >, 1);
}
