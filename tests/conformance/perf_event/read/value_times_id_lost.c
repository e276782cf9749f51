// One event: value, time_enabled, time_running, id, lost.
#include "../behaviour.h"

BEHAVIOUR(value_times_id_lost, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.read_format =
        PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID | PERF_FORMAT_LOST;
    int event = open_event(attr);
    char* at = fresh(7);
    enable(event);
    touch(at, 7);
    disable(event);
    uint64_t values[5];
    EQUAL(read(event, values, sizeof values), 40);
    EQUAL(values[0], 7);
    COMPARE(values[1], >, 0);
    EQUAL(values[2], values[1]);
    EQUAL(values[3], id_of(event));
    EQUAL(values[4], 0);
}
