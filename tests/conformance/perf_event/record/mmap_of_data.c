// attr.mmap_data: records of other mappings, with PERF_RECORD_MISC_MMAP_DATA.
#include "../behaviour.h"

BEHAVIOUR(mmap_of_data, NOTHING) {
    Attr attr = DUMMY;
    attr.mmap_data = 1;
    int event = open_event(attr), page = page_size();
    struct ring* ring = ring_of(event, 1);
    enable(event);
    char* data = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char* code = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    disable(event);
    Header* header = next_of(ring, PERF_RECORD_MMAP);
    CHECK(header);
    EQUAL(((uint64_t*)(header + 1))[1], data);
    EQUAL(header->misc & PERF_RECORD_MISC_MMAP_DATA, PERF_RECORD_MISC_MMAP_DATA);
    EQUAL(remaining(ring, PERF_RECORD_MMAP), 0);
    CHECK(code != data);
}
