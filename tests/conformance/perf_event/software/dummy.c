// The dummy counts nothing, and gives no samples.
#include "../behaviour.h"

BEHAVIOUR(dummy, NOTHING) {
    Attr attr = DUMMY;
    attr.sample_period = 1;
    attr.exclude_kernel = 0;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    fault(5);
    sleep_ms(1);
    disable(event);
    EQUAL(count_of(event), 0);
    CHECK(!next_record(ring));
}
