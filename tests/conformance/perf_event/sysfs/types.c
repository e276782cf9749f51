// /sys/bus/event_source/devices says the types that are fixed.
#include "../behaviour.h"

BEHAVIOUR(types, NOTHING) {
    EQUAL(number_in("/sys/bus/event_source/devices/software/type"), PERF_TYPE_SOFTWARE);
    EQUAL(number_in("/sys/bus/event_source/devices/tracepoint/type"), PERF_TYPE_TRACEPOINT);
    EQUAL(number_in("/sys/bus/event_source/devices/breakpoint/type"), PERF_TYPE_BREAKPOINT);
}
