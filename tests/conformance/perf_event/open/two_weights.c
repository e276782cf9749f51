// PERF_SAMPLE_WEIGHT or PERF_SAMPLE_WEIGHT_STRUCT.
#include "../behaviour.h"

BEHAVIOUR(two_weights, NOTHING) {
    Attr attr = DUMMY;
    attr.sample_type = PERF_SAMPLE_WEIGHT;
    EQUAL(open_error(attr), 0);
    attr.sample_type = PERF_SAMPLE_WEIGHT_STRUCT;
    EQUAL(open_error(attr), 0);
    attr.sample_type = PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT;
    EQUAL(open_error(attr), EINVAL);
}
