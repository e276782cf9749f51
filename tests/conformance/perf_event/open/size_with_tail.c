// A byte beyond the kernel's own size that is not zero is E2BIG, and the kernel writes its size back.
#include "../behaviour.h"

BEHAVIOUR(size_with_tail, NOTHING) {
    static char bytes[4096];
    Attr* attr = (Attr*)bytes;
    *attr = DUMMY;
    attr->size = sizeof bytes;
    bytes[sizeof bytes - 1] = 1;
    FAILS(syscall(SYS_perf_event_open, attr, 0, -1, -1, 0), E2BIG);
    COMPARE(attr->size, >=, PERF_ATTR_SIZE_VER7);
    COMPARE(attr->size, <, 1024);
}
