// precise_ip on x86 without PEBS, and on Arm: EOPNOTSUPP, ENOENT with AMD's IBS, or the instruction itself.
#include "../behaviour.h"

BEHAVIOUR(precise, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.sample_period = 100000;
    attr.sample_type = PERF_SAMPLE_IP;
    attr.precise_ip = 1;
    int event = try_open(attr, 0, -1, -1, 0);
    if (event < 0) {
        CHECK(errno == EOPNOTSUPP || errno == EINVAL || errno == ENOENT);
        SKIP("no precise events");
    }
    struct ring* ring = ring_of(event, 1);
    enable(event);
    million();
    disable(event);
    unsigned samples = 0;
    uint64_t first = 0;
    for (Header* record; (record = next_of(ring, PERF_RECORD_SAMPLE)); samples++) {
        uint64_t ip = *(uint64_t*)(record + 1);
        if (samples == 0) first = ip;
        EQUAL(ip, first);  // the loop has two instructions, and the period is even
        COMPARE(ip, >=, million);
        COMPARE(ip, <, (char*)million + 64);
    }
    COMPARE(samples, >=, 10);
    EQUAL(samples, count_of(event) / 100000);
}
