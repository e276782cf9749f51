// The size that the kernel writes back is one that it takes.
#include "../behaviour.h"

BEHAVIOUR(size_kernels_own, NOTHING) {
    static char bytes[4096];
    Attr* attr = (Attr*)bytes;
    *attr = DUMMY;
    attr->size = 1;
    FAILS(syscall(SYS_perf_event_open, attr, 0, -1, -1, 0), E2BIG);
    SUCCEEDS(syscall(SYS_perf_event_open, attr, 0, -1, -1, 0));
}
