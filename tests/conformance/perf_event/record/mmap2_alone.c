// mmap2 tells of mappings beside mmap: alone, it tells of none.
#include "../behaviour.h"

BEHAVIOUR(mmap2_alone, A_MACHINE) {
    Attr attr = DUMMY;
    attr.mmap2 = 1;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    CHECK(mmap(NULL, page_size(), PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    EQUAL(remaining(ring, PERF_RECORD_MMAP2), 0);
    attr.mmap = 1;
    int both = open_event(attr);
    struct ring* other = ring_of(both, 1);
    enable(both);
    CHECK(mmap(NULL, page_size(), PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    EQUAL(remaining(other, PERF_RECORD_MMAP2), 1);
}
