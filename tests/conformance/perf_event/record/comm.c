// attr.comm: a PERF_RECORD_COMM when the task is named, by prctl and by /proc.
#include "../behaviour.h"

BEHAVIOUR(comm, NOTHING) {
    Attr attr = DUMMY;
    attr.comm = 1;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    prctl(PR_SET_NAME, "first");
    EQUAL(write_error("/proc/self/comm", "second"), 0);
    disable(event);
    prctl(PR_SET_NAME, "third");
    uint32_t* body = (uint32_t*)body_of(ring, PERF_RECORD_COMM);
    EQUAL(body[0], getpid());
    EQUAL(body[1], getpid());
    EQUAL(strcmp((char*)(body + 2), "first"), 0);
    body = (uint32_t*)body_of(ring, PERF_RECORD_COMM);
    EQUAL(strcmp((char*)(body + 2), "second"), 0);
    CHECK(!next_record(ring));
}
