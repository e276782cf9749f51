// PERF_SAMPLE_CGROUP: the id of the control group, which is not 0.
#include "../behaviour.h"

BEHAVIOUR(cgroup, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_CGROUP;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    fault(1);
    disable(event);
    COMPARE(*body_of(ring, PERF_RECORD_SAMPLE), >, 0);
}
