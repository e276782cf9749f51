// perf_event_mux_interval_ms: how long events count that take turns; 0 is EINVAL.
#include "../behaviour.h"

BEHAVIOUR(turns_have_an_interval, PMU | A_MACHINE) {
    long before = number_in(pmu_file("perf_event_mux_interval_ms"));
    COMPARE(before, >=, 1);
    EQUAL(write_error(pmu_file("perf_event_mux_interval_ms"), "0"), EINVAL);
    EQUAL(write_error(pmu_file("perf_event_mux_interval_ms"), "7"), 0);
    EQUAL(number_in(pmu_file("perf_event_mux_interval_ms")), 7);
    char text[20];
    snprintf(text, sizeof text, "%ld", before);
    EQUAL(write_error(pmu_file("perf_event_mux_interval_ms"), text), 0);
}
