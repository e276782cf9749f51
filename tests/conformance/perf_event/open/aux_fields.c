// A software event has no AUX area: aux_output is EOPNOTSUPP, aux_sample_size EINVAL.
#include "../behaviour.h"

BEHAVIOUR(aux_fields, NOTHING) {
    Attr attr = DUMMY;
    attr.aux_output = 1;
    EQUAL(open_error(attr), EOPNOTSUPP);
    attr.aux_output = 0;
    attr.sample_type = PERF_SAMPLE_AUX;
    attr.aux_sample_size = 1 << 20;
    EQUAL(open_error(attr), EINVAL);
}
