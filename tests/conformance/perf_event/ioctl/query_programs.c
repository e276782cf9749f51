// IOC_QUERY_BPF asks of tracepoints alone: EINVAL.
#include "../behaviour.h"

BEHAVIOUR(query_programs, NOTHING) {
    int event = open_event(DUMMY);
    struct {
        unsigned length, count, ids[4];
    } query = {4, 0, {0}};
    FAILS(ioctl(event, PERF_EVENT_IOC_QUERY_BPF, &query), EINVAL);
}
