// PERF_SAMPLE_ADDR and _TRANSACTION of a counter that knows neither an address nor transactions: 0.
#include "../behaviour.h"

BEHAVIOUR(addr_of_a_counter, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.sample_period = 300000;
    attr.sample_type = PERF_SAMPLE_ADDR | PERF_SAMPLE_TRANSACTION;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    million();
    disable(event);
    for (int i = 0; i < 3; i++) {
        uint64_t* body = body_of(ring, PERF_RECORD_SAMPLE);
        EQUAL(body[0], 0);
        EQUAL(body[1], 0);
    }
}
