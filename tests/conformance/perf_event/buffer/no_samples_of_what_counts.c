// An event without a period writes no samples.
#include "../behaviour.h"

BEHAVIOUR(no_samples_of_what_counts, NOTHING) {
    int event = open_event(SOFTWARE(PAGE_FAULTS_MIN));
    struct ring* ring = ring_of(event, 1);
    enable(event);
    fault(10);
    COMPARE(count_of(event), >=, 10);
    CHECK(!next_record(ring));
}
