// PERF_SAMPLE_PHYS_ADDR and PERF_SAMPLE_DATA_PAGE_SIZE of a page that is there.
#include "../behaviour.h"

static volatile uint64_t placed;

BEHAVIOUR(physical_address, SLOTS) {
    Attr attr = attr_of(PERF_TYPE_BREAKPOINT, 0);
    attr.bp_type = HW_BREAKPOINT_W;
    attr.bp_addr = (unsigned long)&placed;
    attr.bp_len = 8;
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_DATA_PAGE_SIZE;
    placed = 1;
    int event = try_open(attr, 0, -1, -1, 0);
    if (event < 0 && errno == EACCES) SKIP("no permission");
    SUCCEEDS(event);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    placed = 2;
    disable(event);
    uint64_t* body = body_of(ring, PERF_RECORD_SAMPLE);
    EQUAL(body[0] % page_size(), (uint64_t)&placed % page_size());
    COMPARE(body[0], >, page_size());
    EQUAL(body[1], page_size());
}
