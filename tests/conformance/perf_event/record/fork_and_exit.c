// attr.task: a record when a child begins, and when a task ends.
#include "../behaviour.h"

BEHAVIOUR(fork_and_exit, NOTHING) {
    Attr attr = DUMMY;
    attr.task = 1;
    attr.inherit = 1;
    run_on(0);
    int event = open_of(attr, 0, 0, -1);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    int pid = fork();
    if (pid == 0) _exit(0);
    EQUAL(wait_for(pid), 0);
    disable(event);
    uint32_t* body = (uint32_t*)body_of(ring, PERF_RECORD_FORK);
    EQUAL(body[0], pid);
    EQUAL(body[1], getpid());
    EQUAL(body[2], pid);
    EQUAL(body[3], getpid());
    body = (uint32_t*)body_of(ring, PERF_RECORD_EXIT);
    EQUAL(body[0], pid);
    EQUAL(body[1], getpid());
    EQUAL(body[2], pid);
    EQUAL(body[3], getpid());
}
