// A CPU that stays among tasks of one group switches none.
#include "../behaviour.h"

BEHAVIOUR(cgroup_switches, ROOT) {
    Attr attr = SOFTWARE(CGROUP_SWITCHES);
    attr.exclude_kernel = 0;
    int event = try_open(attr, -1, 0, -1, 0);
    if (event < 0) SKIP("no such event");
    enable(event);
    loops(1000);
    disable(event);
    COMPARE(count_of(event), >=, 0);
}
