// A period longer than 32 bits is counted to its end all the same: here it is not over.
#include "../behaviour.h"

BEHAVIOUR(longer_than_the_counter, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.sample_period = (1UL << 33) + 12345;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    for (int i = 0; i < 3; i++) million();
    disable(event);
    COMPARE(count_of(event), >=, 3000000);
    COMPARE(count_of(event), <, 3001000);
    CHECK(!next_of(ring, PERF_RECORD_SAMPLE));
}
