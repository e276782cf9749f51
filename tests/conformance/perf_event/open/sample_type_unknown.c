// Each bit of sample_type that means nothing is EINVAL.
#include "../behaviour.h"

BEHAVIOUR(sample_type_unknown, NOTHING) {
    for (int bit = 25; bit < 64; bit++) {
        Attr attr = DUMMY;
        attr.sample_type = 1UL << bit;
        EQUAL(open_error(attr), EINVAL);
    }
}
