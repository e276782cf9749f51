// watermark: POLLIN when more bytes than that have come.
#include "../behaviour.h"

BEHAVIOUR(wakeup_watermark, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_ADDR;  // 16 bytes
    attr.watermark = 1;
    attr.wakeup_watermark = 160;
    int event = open_event(attr);
    CHECK(map(event, 1) != MAP_FAILED);
    char* at = fresh(30);
    enable(event);
    touch(at, 10);
    EQUAL(ready(event), 0);
    touch(at + 10 * page_size(), 1);
    EQUAL(ready(event), POLLIN);
    EQUAL(ready(event), 0);
    touch(at + 11 * page_size(), 9);
    EQUAL(ready(event), 0);
    touch(at + 20 * page_size(), 1);
    EQUAL(ready(event), POLLIN);
}
