// Nobody who did not ask is told of tasks, names or mappings.
#include "../behaviour.h"

BEHAVIOUR(no_fork_unasked, NOTHING) {
    int event = open_event(DUMMY);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    finish(start(NULL));
    prctl(PR_SET_NAME, "unasked");
    mmap(NULL, page_size(), PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    disable(event);
    CHECK(!next_record(ring));
}
