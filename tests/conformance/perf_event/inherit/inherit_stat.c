// inherit_stat: when a child ends a PERF_RECORD_READ says what it counted.
#include "../behaviour.h"

static void fault_thirty_three(void) { fault(33); }

BEHAVIOUR(inherit_stat, NOTHING) {
    run_on(0);
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.inherit = attr.inherit_stat = 1;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_ID;
    int event = open_of(attr, 0, 0, -1);
    open_event(DUMMY);  // which the child has not: else the two might exchange their events when they take turns
    struct ring* ring = ring_of(event, 8);
    enable(event);
    struct child child = start(fault_thirty_three);
    finish(child);
    disable(event);
    Header* record = next_of(ring, PERF_RECORD_READ);
    CHECK(record);
    EQUAL(record->size, 8 + 8 + 24);
    uint64_t* body = (uint64_t*)(record + 1);
    EQUAL((uint32_t)body[0], child.pid);
    EQUAL(body[0] >> 32, child.pid);
    COMPARE(body[1], >=, 33);
    COMPARE(body[2], >, 0);
    EQUAL(body[3], id_of(event));
}
