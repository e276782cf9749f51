// The members of a group are read one by one, and go on in a second round.
#include "../user_counters.h"

BEHAVIOUR(group, PMU | A_MACHINE) {
    int leader = open_event(READABLE);
    Attr attr = READABLE;
    attr.disabled = 0;
    int sibling = open_sibling(attr, leader);
    struct perf_event_mmap_page *first = map(leader, 0), *second = map(sibling, 0);
    CHECK(first != MAP_FAILED && second != MAP_FAILED);
    for (unsigned round = 1; round <= 2; round++) {
        enable(leader);
        million();
        uint64_t counts[2] = {counted_by_page(first), counted_by_page(second)};
        disable(leader);
        for (int i = 0; i < 2; i++) {
            COMPARE(counts[i], >=, round * 1000000);
            COMPARE(counts[i], <, round * 1001000);
        }
    }
}
