// An event of a CPU counts whoever is there.
#include "../behaviour.h"

BEHAVIOUR(of_a_cpu, PMU | ROOT) {
    run_on(0);
    int event = open_of(INSTRUCTIONS, -1, 0, -1);
    enable(event);
    struct child child = start(million);
    finish(child);
    million();
    disable(event);
    COMPARE(count_of(event), >=, 2000000);
}
