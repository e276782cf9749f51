// Where the reader does not read, records are lost; the next one that finds room follows one that says how many.
#include "../behaviour.h"

BEHAVIOUR(full_buffer, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_ADDR;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    int room = (page_size() - 1) / 16;
    char* at = fresh(room + 11);
    enable(event);
    touch(at, room + 10);
    disable(event);
    EQUAL(ring->page->data_head, 16 * room);
    EQUAL(remaining(ring, PERF_RECORD_SAMPLE), room);
    enable(event);
    touch(at + (room + 10) * page_size(), 1);
    disable(event);
    uint64_t* lost = body_of(ring, PERF_RECORD_LOST);
    EQUAL(lost[0], id_of(event));
    EQUAL(lost[1], 10);
    EQUAL(*body_of(ring, PERF_RECORD_SAMPLE), at + (room + 10) * page_size());
}
