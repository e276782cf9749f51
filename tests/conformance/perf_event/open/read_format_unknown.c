// Each bit of read_format that means nothing is EINVAL.
#include "../behaviour.h"

BEHAVIOUR(read_format_unknown, NOTHING) {
    for (int bit = 5; bit < 64; bit++) {
        Attr attr = DUMMY;
        attr.read_format = 1UL << bit;
        EQUAL(open_error(attr), EINVAL);
    }
}
