// What overflows of counters wake and signal is no occurrence of a tracepoint.
#include "wakings.h"

BEHAVIOUR(wakings_by_counters, TRACEFS | PMU) {
    Attr attr = INSTRUCTIONS;
    attr.sample_period = 700000;
    wakes_uncounted(attr, million);
}
