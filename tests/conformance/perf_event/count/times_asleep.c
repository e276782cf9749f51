// A task that sleeps ages no event of its own.
#include "../behaviour.h"

BEHAVIOUR(times_asleep, NOTHING) {
    Attr attr = DUMMY;
    attr.disabled = 0;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
    int event = open_event(attr);
    sleep_ms(200);
    uint64_t values[2];
    EQUAL(read(event, values, sizeof values), 16);
    COMPARE(values[1], <, 150000000);
}
