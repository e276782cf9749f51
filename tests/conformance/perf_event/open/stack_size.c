// sample_stack_user is a multiple of 8 below 64 KiB.
#include "../behaviour.h"

BEHAVIOUR(stack_size, NOTHING) {
    Attr attr = DUMMY;
    attr.sample_type = PERF_SAMPLE_STACK_USER;
    attr.sample_stack_user = 4096;
    EQUAL(open_error(attr), 0);
    attr.sample_stack_user = 65528;
    EQUAL(open_error(attr), 0);
    attr.sample_stack_user = 4097;
    EQUAL(open_error(attr), EINVAL);
    attr.sample_stack_user = 65536;
    EQUAL(open_error(attr), EINVAL);
}
