// An event of a task and a CPU counts while the one is on the other.
#include "../behaviour.h"

BEHAVIOUR(of_a_task_on_a_cpu, PMU | TWO_CPUS) {
    run_on(0);
    int first = open_of(INSTRUCTIONS, 0, 0, -1), second = open_of(INSTRUCTIONS, 0, 1, -1);
    enable(first);
    enable(second);
    million();
    EQUAL(count_of(second), 0);
    run_on(1);
    uint64_t there = count_of(first);
    million();
    EQUAL(count_of(first), there);
    COMPARE(there, >=, 1000000);
    COMPARE(count_of(second), >=, 1000000);
}
