// exclude_callchain_user: nothing of the program's in the chain.
#include "../behaviour.h"

BEHAVIOUR(callchain_without_user, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_CALLCHAIN;
    attr.exclude_callchain_user = attr.exclude_callchain_kernel = 1;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    fault(1);
    disable(event);
    EQUAL(*body_of(ring, PERF_RECORD_SAMPLE), 0);
}
