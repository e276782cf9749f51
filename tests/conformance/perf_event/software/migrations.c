// A task that goes to another CPU: one migration each time.
#include "../behaviour.h"

BEHAVIOUR(migrations, TWO_CPUS) {
    Attr attr = SOFTWARE(CPU_MIGRATIONS);
    attr.exclude_kernel = 0;
    int event = open_event(attr);
    run_on(0);
    enable(event);
    for (int i = 1; i <= 10; i++) run_on(i % 2);
    disable(event);
    EQUAL(count_of(event), 10);
}
