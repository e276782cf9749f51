// A number that no tracepoint has cannot be opened: EINVAL.
#include "../behaviour.h"

BEHAVIOUR(tracepoint_unknown, TRACEFS) {
    Attr attr = attr_of(PERF_TYPE_TRACEPOINT, 0x7fffffff);
    attr.exclude_kernel = 0;
    EQUAL(open_error(attr), EINVAL);
}
