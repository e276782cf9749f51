// An event that samples counts what one does that does not.
#include "../behaviour.h"

BEHAVIOUR(sampling_changes_no_count, PMU) {
    Attr attr = INSTRUCTIONS;
    int plain = open_event(attr);
    attr.sample_period = 10007;
    attr.disabled = 0;
    int sampling = open_sibling(attr, plain);
    struct ring* ring = ring_of(sampling, 8);
    enable(plain);
    million();
    disable(plain);
    COMPARE(count_of(plain), >=, 1000000);
    EQUAL(count_of(sampling), count_of(plain));
    EQUAL(remaining(ring, PERF_RECORD_SAMPLE), count_of(plain) / 10007);
}
