// What is beyond the kernel's own size may be there if it is zero.
#include "../behaviour.h"

BEHAVIOUR(size_with_zero_tail, NOTHING) {
    static char bytes[4096];
    Attr* attr = (Attr*)bytes;
    *attr = DUMMY;
    attr->size = sizeof bytes;
    SUCCEEDS(syscall(SYS_perf_event_open, attr, 0, -1, -1, 0));
}
