// The times of children are added.
#include "../behaviour.h"

static void spin_child(void) { loops(3000000); }

BEHAVIOUR(times_add_up, NOTHING) {
    Attr attr = DUMMY;
    attr.inherit = 1;
    attr.disabled = 0;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
    int event = open_event(attr);
    uint64_t before[2], after[2];
    EQUAL(read(event, before, sizeof before), 16);
    finish(start(spin_child));
    EQUAL(read(event, after, sizeof after), 16);
    COMPARE(after[1] - before[1], >, 300000);  // 6,000,000 instructions take more at any clock
}
