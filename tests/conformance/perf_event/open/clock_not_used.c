// Without use_clockid nobody looks at clockid.
#include "../behaviour.h"

BEHAVIOUR(clock_not_used, NOTHING) {
    Attr attr = DUMMY;
    attr.clockid = 50;
    EQUAL(open_error(attr), 0);
}
