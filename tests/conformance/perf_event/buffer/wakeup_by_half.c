// Without either: when half of the buffer is full.
#include "../behaviour.h"

BEHAVIOUR(wakeup_by_half, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_ADDR;
    int event = open_event(attr);
    CHECK(map(event, 1) != MAP_FAILED);
    int half = page_size() / 2 / 16;
    char* at = fresh(half + 1);
    enable(event);
    touch(at, half);
    EQUAL(ready(event), 0);
    touch(at + half * page_size(), 1);
    EQUAL(ready(event), POLLIN);
}
