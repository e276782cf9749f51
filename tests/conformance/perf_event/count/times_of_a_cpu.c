// An event of a CPU ages while nothing runs there.
#include "../behaviour.h"

BEHAVIOUR(times_of_a_cpu, ROOT) {
    Attr attr = DUMMY;
    attr.disabled = 0;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
    int event = open_of(attr, -1, 0, -1);
    sleep_ms(50);
    uint64_t values[2];
    EQUAL(read(event, values, sizeof values), 16);
    COMPARE(values[1], >=, 50000000);
}
