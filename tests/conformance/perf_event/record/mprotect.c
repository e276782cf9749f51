// What becomes code by mprotect is told as a mapping is.
#include "../behaviour.h"

BEHAVIOUR(mprotect, NOTHING) {
    Attr attr = DUMMY;
    attr.mmap = 1;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    char* at = fresh(1);
    enable(event);
    SUCCEEDS(mprotect(at, page_size(), PROT_READ | PROT_EXEC));
    disable(event);
    EQUAL(body_of(ring, PERF_RECORD_MMAP)[1], at);
}
