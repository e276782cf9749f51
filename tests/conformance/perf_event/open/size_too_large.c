// A size above a page is E2BIG, whatever stands there.
#include "../behaviour.h"

BEHAVIOUR(size_too_large, NOTHING) {
    static char bytes[8192];
    Attr* attr = (Attr*)bytes;
    *attr = DUMMY;
    attr->size = page_size() + 1;
    FAILS(syscall(SYS_perf_event_open, attr, 0, -1, -1, 0), E2BIG);
    COMPARE(attr->size, >=, PERF_ATTR_SIZE_VER7);
}
