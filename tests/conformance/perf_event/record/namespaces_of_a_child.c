// ... and of each child when it begins: seven or more, each with a number.
#include "../behaviour.h"

BEHAVIOUR(namespaces_of_a_child, NOTHING) {
    Attr attr = DUMMY;
    attr.namespaces = 1;
    int event = try_open(attr, 0, -1, -1, 0);
    if (event < 0 && errno == EACCES) SKIP("no CAP_PERFMON");
    struct ring* ring = ring_of(event, 1);
    enable(event);
    struct child child = start(NULL);
    finish(child);
    disable(event);
    uint64_t* body = body_of(ring, PERF_RECORD_NAMESPACES);
    EQUAL((uint32_t)body[0], child.pid);
    EQUAL(body[0] >> 32, child.pid);
    COMPARE(body[1], >=, 7);
    for (unsigned i = 0; i < body[1]; i++) COMPARE(body[3 + 2 * i], >, 0);
}
