// A child has the descriptors: the same events, of the parent.
#include "../behaviour.h"

static int shared_event;

static void read_parents(void) {
    fault(100);
    uint64_t count = count_of(shared_event);
    COMPARE(count, >=, 10);
    COMPARE(count, <, 100);
    disable(shared_event);
}

BEHAVIOUR(of_a_forked_child, NOTHING) {
    shared_event = open_event(SOFTWARE(PAGE_FAULTS_MIN));
    enable(shared_event);
    fault(10);
    finish(start(read_parents));
    uint64_t count = count_of(shared_event);
    fault(10);
    EQUAL(count_of(shared_event), count);
}
