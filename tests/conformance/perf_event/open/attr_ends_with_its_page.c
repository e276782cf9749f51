// No byte behind attr.size is read.
#include "../behaviour.h"

BEHAVIOUR(attr_ends_with_its_page, NOTHING) {
    char* at = mmap(NULL, 2 * page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(at + page_size(), page_size());
    Attr attr = DUMMY;
    char* place = at + page_size() - PERF_ATTR_SIZE_VER5;
    attr.size = PERF_ATTR_SIZE_VER5;
    memcpy(place, &attr, PERF_ATTR_SIZE_VER5);
    SUCCEEDS(syscall(SYS_perf_event_open, place, 0, -1, -1, 0));
    ((Attr*)place)->size = PERF_ATTR_SIZE_VER6;
    FAILS(syscall(SYS_perf_event_open, place, 0, -1, -1, 0), EFAULT);
}
