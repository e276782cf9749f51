// Without exclude_kernel there is no less than with it.
#include "../behaviour.h"

BEHAVIOUR(counts_the_kernel, PMU) {
    Attr attr = INSTRUCTIONS;
    int user = open_event(attr);
    attr.exclude_kernel = 0;
    int both = open_event(attr);
    enable(both);
    enable(user);
    fault(10);
    disable(user);
    disable(both);
    COMPARE(count_of(both), >=, count_of(user));
}
