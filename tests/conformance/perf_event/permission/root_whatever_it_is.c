// With all capabilities it does not matter.
#include "../behaviour.h"

BEHAVIOUR(root_whatever_it_is, A_MACHINE) {
    set_sysctl("perf_event_paranoid", 3);
    Attr attr = DUMMY;
    attr.exclude_kernel = 0;
    EQUAL(open_error(attr), 0);
    SUCCEEDS(try_open(attr, -1, 0, -1, 0));
}
