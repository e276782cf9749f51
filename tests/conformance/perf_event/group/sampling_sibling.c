// A sibling may sample while its leader only counts.
#include "../behaviour.h"

BEHAVIOUR(sampling_sibling, PMU) {
    Attr attr = INSTRUCTIONS;
    int leader = open_event(HARDWARE(CPU_CYCLES));
    attr.sample_period = 50000;
    attr.disabled = 0;
    int sibling = open_sibling(attr, leader);
    struct ring* ring = ring_of(sibling, 1);
    enable(leader);
    million();
    disable(leader);
    COMPARE(count_of(sibling), >=, 1000000);
    EQUAL(remaining(ring, PERF_RECORD_SAMPLE), count_of(sibling) / 50000);
}
