// PERF_FLAG_FD_OUTPUT: the records go to the buffer of group_fd.
#include "../behaviour.h"

BEHAVIOUR(output_flag_to_a_buffer, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_ID;
    int other = open_event(attr);
    struct ring* ring = ring_of(other, 1);
    int event = try_open(attr, 0, -1, other, PERF_FLAG_FD_OUTPUT | PERF_FLAG_FD_NO_GROUP);
    SUCCEEDS(event);
    enable(event);
    fault(1);
    disable(event);
    EQUAL(*body_of(ring, PERF_RECORD_SAMPLE), id_of(event));
}
