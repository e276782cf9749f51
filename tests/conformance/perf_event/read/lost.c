// PERF_FORMAT_LOST: the samples that found no room in the buffer.
#include "../behaviour.h"

BEHAVIOUR(lost, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;  // 40 bytes
    attr.read_format = PERF_FORMAT_LOST;
    int event = open_event(attr);
    CHECK(map(event, 1) != MAP_FAILED);
    char* at = fresh(200);
    enable(event);
    touch(at, 200);
    disable(event);
    uint64_t values[2];
    EQUAL(read(event, values, sizeof values), 16);
    EQUAL(values[0], 200);
    EQUAL(values[1], 200 - (page_size() - 1) / 40);
}
