// wakeup_events: poll(2) says POLLIN once for so many samples.
#include "../behaviour.h"

BEHAVIOUR(wakeup_events, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.wakeup_events = 3;
    int event = open_event(attr);
    CHECK(map(event, 1) != MAP_FAILED);
    char* at = fresh(10);
    enable(event);
    touch(at, 2);
    EQUAL(ready(event), 0);
    touch(at + 2 * page_size(), 1);
    EQUAL(ready(event), POLLIN);
    EQUAL(ready(event), 0);
    touch(at + 3 * page_size(), 3);
    EQUAL(ready(event), POLLIN);
}
