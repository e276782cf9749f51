// Where the kernel cannot write its size back, it is E2BIG all the same.
#include "../behaviour.h"

BEHAVIOUR(attr_read_only, NOTHING) {
    Attr* at = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *at = DUMMY;
    at->size = 3;
    mprotect(at, page_size(), PROT_READ);
    FAILS(syscall(SYS_perf_event_open, at, 0, -1, -1, 0), E2BIG);
    EQUAL(at->size, 3);
}
