// An inherited event on any CPU has no buffer: EINVAL. On one CPU it has.
#include "../behaviour.h"

BEHAVIOUR(no_buffer_on_any_cpu, NOTHING) {
    Attr attr = DUMMY;
    attr.inherit = 1;
    FAILS(map(open_event(attr), 1) == MAP_FAILED ? -1 : 0, EINVAL);
    CHECK(map(open_of(attr, 0, 0, -1), 1) != MAP_FAILED);
}
