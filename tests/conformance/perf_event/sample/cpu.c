// PERF_SAMPLE_CPU: on which.
#include "../behaviour.h"

BEHAVIOUR(cpu, TWO_CPUS) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_CPU;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    for (unsigned cpu = 0; cpu < 2; cpu++) {
        run_on(cpu);
        enable(event);
        fault(1);
        disable(event);
        EQUAL(*body_of(ring, PERF_RECORD_SAMPLE), cpu);
        remaining(ring, PERF_RECORD_SAMPLE);
    }
}
