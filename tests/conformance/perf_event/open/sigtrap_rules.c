// sigtrap needs remove_on_exec, and a task.
#include "../behaviour.h"

BEHAVIOUR(sigtrap_rules, ROOT) {
    Attr attr = DUMMY;
    attr.sigtrap = 1;
    EQUAL(open_error(attr), EINVAL);
    attr.remove_on_exec = 1;
    EQUAL(open_error(attr), 0);
    FAILS(try_open(attr, -1, 0, -1, 0), EINVAL);
}
