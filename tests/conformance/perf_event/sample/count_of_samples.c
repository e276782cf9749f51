// As many samples as periods.
#include "../behaviour.h"

BEHAVIOUR(count_of_samples, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.sample_period = 10007;
    attr.sample_type = PERF_SAMPLE_IP;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 8);
    enable(event);
    million();
    disable(event);
    COMPARE(count_of(event), >=, 1000000);
    EQUAL(remaining(ring, PERF_RECORD_SAMPLE), count_of(event) / 10007);
}
