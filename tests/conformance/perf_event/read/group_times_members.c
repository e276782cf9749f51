// A group: the number of events, the leader's times, then value, id and lost of each in the order of opening.
#include "../behaviour.h"

BEHAVIOUR(group_times_members, NOTHING) {
    Attr attr = DUMMY;
    attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
                       PERF_FORMAT_ID | PERF_FORMAT_LOST;
    int leader = open_event(attr);
    Attr faults = SOFTWARE(PAGE_FAULTS_MIN);
    faults.disabled = 0;
    int first = open_sibling(faults, leader), second = open_sibling(DUMMY, leader);
    char* at = fresh(7);
    enable(leader);
    touch(at, 7);
    disable(leader);
    uint64_t values[12];
    EQUAL(read(leader, values, sizeof values), 96);
    EQUAL(values[0], 3);
    COMPARE(values[1], >, 0);
    EQUAL(values[2], values[1]);
    EQUAL(values[3], 0);
    EQUAL(values[4], id_of(leader));
    EQUAL(values[5], 0);
    EQUAL(values[6], 7);
    EQUAL(values[7], id_of(first));
    EQUAL(values[10], id_of(second));
}
