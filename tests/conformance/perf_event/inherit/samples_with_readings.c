// PERF_SAMPLE_READ of an inherited event needs PERF_SAMPLE_TID: readings are then each task's own.
#include "../behaviour.h"

static char* childs_pages;

static void touch_two(void) { touch(childs_pages, 2); }

BEHAVIOUR(samples_with_readings, NOTHING) {
    run_on(0);
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.inherit = 1;
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_READ;
    attr.read_format = PERF_FORMAT_ID;
    EQUAL(open_error(attr), EINVAL);
    attr.sample_type |= PERF_SAMPLE_TID;
    int event = open_of(attr, 0, 0, -1);
    struct ring* ring = ring_of(event, 8);
    childs_pages = fresh(2);
    enable(event);
    fault(50);
    struct child child = start(touch_two);
    finish(child);
    disable(event);
    Header* record;
    uint64_t of_child = 0;
    while ((record = next_of(ring, PERF_RECORD_SAMPLE))) {
        uint64_t* body = (uint64_t*)(record + 1);
        if ((uint32_t)body[0] == (uint32_t)child.pid) EQUAL(body[1], ++of_child);
    }
    COMPARE(of_child, >=, 2);
}
