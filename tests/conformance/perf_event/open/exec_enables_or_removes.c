// enable_on_exec or remove_on_exec.
#include "../behaviour.h"

BEHAVIOUR(exec_enables_or_removes, NOTHING) {
    Attr attr = DUMMY;
    attr.enable_on_exec = attr.remove_on_exec = 1;
    EQUAL(open_error(attr), EINVAL);
}
