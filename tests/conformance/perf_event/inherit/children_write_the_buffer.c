// The samples of children are in the buffer of the event that was opened, under its id.
#include "../behaviour.h"

static void fault_one(void) { fault(1); }

BEHAVIOUR(children_write_the_buffer, NOTHING) {
    run_on(0);
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.inherit = 1;
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_ID;
    int event = open_of(attr, 0, 0, -1);
    struct ring* ring = ring_of(event, 8);
    struct child child = start(fault_one);
    enable(event);
    finish(child);
    disable(event);
    Header* record;
    int from_child = 0;
    while ((record = next_of(ring, PERF_RECORD_SAMPLE))) {
        uint64_t* body = (uint64_t*)(record + 1);
        EQUAL(body[1], id_of(event));
        from_child += (uint32_t)body[0] == (uint32_t)child.pid;
    }
    COMPARE(from_child, >=, 1);
}
