// An event of a task on a CPU is enabled, but does not run while the task is elsewhere.
#include "../behaviour.h"

BEHAVIOUR(times_on_another_cpu, TWO_CPUS) {
    run_on(0);
    Attr attr = DUMMY;
    attr.disabled = 0;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    int event = open_of(attr, 0, 1, -1);
    loops(100000);
    uint64_t values[3];
    EQUAL(read(event, values, sizeof values), 24);
    COMPARE(values[1], >, 0);
    EQUAL(values[2], 0);
}
