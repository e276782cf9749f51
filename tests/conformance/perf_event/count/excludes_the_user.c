// exclude_user: what the program executes does not count.
#include "../behaviour.h"

BEHAVIOUR(excludes_the_user, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.exclude_kernel = 0;
    attr.exclude_user = 1;
    int event = open_event(attr);
    enable(event);
    million();
    disable(event);
    COMPARE(count_of(event), <, 1000000);
}
