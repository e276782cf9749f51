// A size below the first version's is E2BIG, and the kernel writes its own back.
#include "../behaviour.h"

BEHAVIOUR(size_too_small, NOTHING) {
    Attr attr = DUMMY;
    attr.size = PERF_ATTR_SIZE_VER0 - 1;
    FAILS(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0), E2BIG);
    COMPARE(attr.size, >=, PERF_ATTR_SIZE_VER7);
}
