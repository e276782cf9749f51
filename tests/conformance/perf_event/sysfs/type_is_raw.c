// The PMU's own type counts as PERF_TYPE_RAW does, and takes part in its groups.
#include "../behaviour.h"

BEHAVIOUR(type_is_raw, PMU) {
#ifdef __x86_64__
    unsigned long code = 0xc0;
#else
    unsigned long code = 0x08;
#endif
    Attr raw = attr_of(PERF_TYPE_RAW, code), own = attr_of(number_in(pmu_file("type")), code);
    own.disabled = 0;
    int leader = open_event(raw), sibling = open_sibling(own, leader);
    enable(leader);
    million();
    disable(leader);
    COMPARE(count_of(leader), >=, 1000000);
    EQUAL(count_of(sibling), count_of(leader));
}
