// As the reader goes on there is room again, without anything lost.
#include "../behaviour.h"

BEHAVIOUR(samples_behind_a_reader, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_ADDR;
    int event = open_event(attr), samples = 0;
    struct ring* ring = ring_of(event, 1);
    enable(event);
    for (int i = 0; i < 10; i++) {
        fault(100);
        Header* record;
        while ((record = next_record(ring))) {
            EQUAL(record->type, PERF_RECORD_SAMPLE);
            samples++;
        }
    }
    COMPARE(samples, >=, 1000);
}
