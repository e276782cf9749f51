// sample_max_stack is at most perf_event_max_stack, where call chains are sampled: EOVERFLOW.
#include "../behaviour.h"

BEHAVIOUR(stack_depth, NOTHING) {
    Attr attr = DUMMY;
    attr.sample_max_stack = number_in("/proc/sys/kernel/perf_event_max_stack") + 1;
    EQUAL(open_error(attr), 0);
    attr.sample_type = PERF_SAMPLE_CALLCHAIN;
    EQUAL(open_error(attr), EOVERFLOW);
    attr.sample_max_stack--;
    EQUAL(open_error(attr), 0);
}
