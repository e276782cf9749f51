// PERF_SAMPLE_PERIOD of a counter: its period.
#include "../behaviour.h"

BEHAVIOUR(period_of_a_counter, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.sample_period = 100003;
    attr.sample_type = PERF_SAMPLE_PERIOD;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    million();
    disable(event);
    for (int i = 0; i < 9; i++) EQUAL(*body_of(ring, PERF_RECORD_SAMPLE), 100003);
}
