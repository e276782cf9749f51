// A number that no tracepoint has cannot be opened.
#include "../behaviour.h"

BEHAVIOUR(tracepoint_unknown, TRACEFS) {
    Attr attr = attr_of(PERF_TYPE_TRACEPOINT, 0x7fffffff);
    attr.exclude_kernel = 0;
    CHECK(open_error(attr) != 0);
}
