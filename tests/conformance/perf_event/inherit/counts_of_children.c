// attr.inherit: what children count is read with it, while they live and when they have ended.
#include "../behaviour.h"

static int gates[2], ready_pipe[2];

static void fault_and_wait(void) {
    char byte;
    fault(50);
    CHECK(write(ready_pipe[1], "r", 1) == 1);
    CHECK(read(gates[0], &byte, 1) == 1);
}

BEHAVIOUR(counts_of_children, NOTHING) {
    SUCCEEDS(pipe(gates));
    SUCCEEDS(pipe(ready_pipe));
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.inherit = 1;
    int event = open_event(attr);
    enable(event);
    struct child child = start(fault_and_wait);
    let_go(child);
    char byte;
    EQUAL(read(ready_pipe[0], &byte, 1), 1);
    uint64_t alive = count_of(event);
    COMPARE(alive, >=, 50);
    EQUAL(write(gates[1], "g", 1), 1);
    EQUAL(wait_for(child.pid), 0);
    COMPARE(count_of(event), >=, alive);
}
