// The clock of a CPU goes on while nobody runs there.
#include "../behaviour.h"

BEHAVIOUR(cpu_clock_of_a_cpu, ROOT) {
    int event = open_of(SOFTWARE(CPU_CLOCK), -1, 0, -1);
    enable(event);
    sleep_ms(50);
    disable(event);
    COMPARE(count_of(event), >=, 50000000);
}
