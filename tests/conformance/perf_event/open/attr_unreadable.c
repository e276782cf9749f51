// An attr in memory that cannot be read: EFAULT.
#include "../behaviour.h"

BEHAVIOUR(attr_unreadable, NOTHING) {
    char* at = mmap(NULL, page_size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FAILS(syscall(SYS_perf_event_open, at, 0, -1, -1, 0), EFAULT);
}
