// wakeup_events counts samples alone; a watermark of one byte wakes for every record.
#include "../behaviour.h"

static int opened(int watermark) {
    Attr attr = DUMMY;
    attr.task = 1;
    attr.sample_period = 1;
    attr.watermark = watermark;
    attr.wakeup_events = 1;  // wakeup_watermark
    int event = open_event(attr);
    CHECK(map(event, 1) != MAP_FAILED);
    enable(event);
    return event;
}

BEHAVIOUR(only_samples_wake, NOTHING) {
    int samples = opened(0), records = opened(1);
    struct child child = start(NULL);
    EQUAL(ready(samples), 0);
    EQUAL(ready(records), POLLIN);
    finish(child);
}
