// The task's clock: the time in which it was on a CPU.
#include "../behaviour.h"

BEHAVIOUR(task_clock, NOTHING) {
    int event = open_event(SOFTWARE(TASK_CLOCK));
    struct timespec begun, ended;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    enable(event);
    for (int i = 0; i < 10; i++) million();
    disable(event);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    uint64_t passed = (ended.tv_sec - begun.tv_sec) * 1000000000ULL + ended.tv_nsec - begun.tv_nsec;
    COMPARE(count_of(event), >=, 200000);  // 10,000,000 instructions: 8 a cycle at 6 GHz
    COMPARE(count_of(event), <=, passed);
}
