// A mapping keeps the event when its descriptor is closed: samples go on.
#include "../behaviour.h"

BEHAVIOUR(kept_by_its_mapping, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    close(event);
    fault(5);
    COMPARE(remaining(ring, PERF_RECORD_SAMPLE), >=, 5);
}
