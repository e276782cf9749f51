// exclude_user and exclude_kernel: nothing is left to count.
#include "../behaviour.h"

BEHAVIOUR(excludes_both, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.exclude_user = 1;
    int event = try_open(attr, 0, -1, -1, 0);
    if (event < 0) SKIP("no such event here");
    enable(event);
    million();
    disable(event);
    EQUAL(count_of(event), 0);
}
