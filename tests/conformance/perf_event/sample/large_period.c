// A period that is never over gives no sample.
#include "../behaviour.h"

BEHAVIOUR(large_period, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.sample_period = (1UL << 63) - 1;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    million();
    disable(event);
    COMPARE(count_of(event), >=, 1000000);
    CHECK(!next_of(ring, PERF_RECORD_SAMPLE));
}
