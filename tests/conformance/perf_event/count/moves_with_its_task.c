// An event of a task on any CPU goes with it, and counts each instruction once.
#include "../behaviour.h"

BEHAVIOUR(moves_with_its_task, PMU | TWO_CPUS) {
    int event = open_event(INSTRUCTIONS);
    run_on(0);
    enable(event);
    million();
    run_on(1);
    million();
    disable(event);
    COMPARE(count_of(event), >=, 2000000);
    COMPARE(count_of(event), <, 2010000);
}
