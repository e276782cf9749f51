// precise_ip on x86's counters without PEBS, and on Arm's: EOPNOTSUPP, or the instruction itself.
#include "../behaviour.h"

BEHAVIOUR(precise, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.sample_period = 100000;
    attr.sample_type = PERF_SAMPLE_IP;
    attr.precise_ip = 1;
    int event = try_open(attr, 0, -1, -1, 0);
    if (event < 0) {
        CHECK(errno == EOPNOTSUPP || errno == EINVAL);
        SKIP("no precise events");
    }
    struct ring* ring = ring_of(event, 1);
    enable(event);
    million();
    disable(event);
    COMPARE(remaining(ring, PERF_RECORD_SAMPLE), ==, count_of(event) / 100000);
}
