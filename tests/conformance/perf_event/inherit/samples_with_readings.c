// PERF_SAMPLE_READ of an inherited event needs PERF_SAMPLE_TID: readings are then each task's own.
#include "../behaviour.h"

BEHAVIOUR(samples_with_readings, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.inherit = 1;
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_READ;
    attr.read_format = PERF_FORMAT_ID;
    EQUAL(open_error(attr), EINVAL);
    attr.sample_type |= PERF_SAMPLE_TID;
    EQUAL(open_error(attr), 0);
}
