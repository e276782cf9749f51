// A type that nobody has: ENOENT.
#include "../behaviour.h"

BEHAVIOUR(type_unknown, NOTHING) {
    EQUAL(open_error(attr_of(-5, 0)), ENOENT);
    EQUAL(open_error(attr_of(99999, 0)), ENOENT);
}
