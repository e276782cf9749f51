// __reserved_2 is zero.
#include "../behaviour.h"

BEHAVIOUR(reserved_2, NOTHING) {
    Attr attr = DUMMY;
    attr.__reserved_2 = 1;
    EQUAL(open_error(attr), EINVAL);
}
