// Neither clock of a task goes on while it sleeps.
#include "../behaviour.h"

BEHAVIOUR(clocks_asleep, NOTHING) {
    int task = open_event(SOFTWARE(TASK_CLOCK)), cpu = open_event(SOFTWARE(CPU_CLOCK));
    enable(task), enable(cpu);
    sleep_ms(200);
    disable(task), disable(cpu);
    COMPARE(count_of(task), <, 100000000);
    COMPARE(count_of(cpu), <, 100000000);
    COMPARE(count_of(task), >, 0);
}
