// The size of every version opens, and so does any between.
#include "../behaviour.h"

BEHAVIOUR(size_of_each_version, NOTHING) {
    for (int size = PERF_ATTR_SIZE_VER0; size <= PERF_ATTR_SIZE_VER7; size++) {
        Attr attr = DUMMY;
        attr.size = size;
        EQUAL(open_error(attr), 0);
    }
}
