// The upper bits behind aux_sample_size are zero.
#include "../behaviour.h"

BEHAVIOUR(reserved_3, NOTHING) {
    Attr attr = DUMMY;
    uint32_t word = 1U << 31;
    memcpy((char*)&attr + offsetof(Attr, aux_sample_size) + 4, &word, sizeof word);
    EQUAL(open_error(attr), EINVAL);
}
