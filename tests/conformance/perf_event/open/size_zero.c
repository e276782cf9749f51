// attr.size 0 means the first version's size.
#include "../behaviour.h"

BEHAVIOUR(size_zero, NOTHING) {
    Attr attr = DUMMY;
    attr.size = 0;
    attr.branch_sample_type = ~0UL;  // beyond the first version: nobody looks
    EQUAL(open_error(attr), 0);
}
