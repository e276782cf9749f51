// Each reserved bit of the bit-fields is EINVAL.
#include "../behaviour.h"

BEHAVIOUR(reserved_bits, NOTHING) {
    for (int bit = 40; bit < 64; bit++) {  // 38 and 39 are taken by kernels that come
        Attr attr = DUMMY;
        uint64_t flags;
        memcpy(&flags, (char*)&attr + 40, sizeof flags);
        flags |= 1UL << bit;
        memcpy((char*)&attr + 40, &flags, sizeof flags);
        EQUAL(open_error(attr), EINVAL);
    }
}
