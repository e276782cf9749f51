// A software event has no branch stack: EOPNOTSUPP; without a kind of branch it is EINVAL before.
#include "../behaviour.h"

BEHAVIOUR(branch_stack_of_software, NOTHING) {
    Attr attr = DUMMY;
    attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
    EQUAL(open_error(attr), EINVAL);
    attr.branch_sample_type = PERF_SAMPLE_BRANCH_USER;
    EQUAL(open_error(attr), EINVAL);
    attr.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY;
    EQUAL(open_error(attr), EOPNOTSUPP);
    attr.branch_sample_type |= 1UL << 40;
    EQUAL(open_error(attr), EINVAL);
}
