// attr.comm alone tells of forks and exits as well, as attr.mmap does.
#include "../behaviour.h"

static void of(Attr attr) {
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    struct child child = start(NULL);
    uint32_t* fork = (uint32_t*)body_of(ring, PERF_RECORD_FORK);
    EQUAL(fork[0], child.pid);
    EQUAL(fork[1], getpid());
    finish(child);
    close(event);
}

BEHAVIOUR(fork_by_comm, NOTHING) {
    Attr attr = DUMMY;
    attr.comm = 1;
    of(attr);
    attr = DUMMY;
    attr.mmap = 1;
    of(attr);
}
