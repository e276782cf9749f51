// inherit_thread says how to inherit.
#include "../behaviour.h"

BEHAVIOUR(inherit_thread_alone, NOTHING) {
    Attr attr = DUMMY;
    attr.inherit_thread = 1;
    EQUAL(open_error(attr), EINVAL);
    attr.inherit = 1;
    EQUAL(open_error(attr), 0);
}
