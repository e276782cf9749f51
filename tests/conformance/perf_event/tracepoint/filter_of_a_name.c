// A filter by a text: equal, and by a pattern.
#include "../behaviour.h"

BEHAVIOUR(filter_of_a_name, TRACEFS) {
    Attr attr = attr_of(PERF_TYPE_TRACEPOINT, number_in("/sys/kernel/tracing/events/sched/sched_switch/id"));
    attr.exclude_kernel = 0;
    int equal = open_event(attr), pattern = open_event(attr);
    SUCCEEDS(ioctl(equal, PERF_EVENT_IOC_SET_FILTER, "prev_comm == \"one\""));
    SUCCEEDS(ioctl(pattern, PERF_EVENT_IOC_SET_FILTER, "prev_comm ~ \"*o*\""));
    static const char* const NAMES[] = {"one", "two", "three"};
    for (int i = 0; i < 3; i++) {
        prctl(PR_SET_NAME, NAMES[i]);
        enable(equal), enable(pattern);
        sleep_ms(1);
        disable(equal), disable(pattern);
        if (i == 0) COMPARE(count_of(equal), >=, 1);
        if (i == 0) COMPARE(count_of(equal), ==, count_of(pattern));
        if (i == 1) COMPARE(count_of(equal), <, count_of(pattern));
    }
    uint64_t before = count_of(pattern);
    enable(pattern);
    sleep_ms(1);
    disable(pattern);
    EQUAL(count_of(pattern), before);
}
