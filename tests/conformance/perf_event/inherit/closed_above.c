// When the event that was opened is closed those of children end with it: they write no samples any more.
#include "../behaviour.h"

static int go_on[2], faulted[2], childs_event;

static void fault_twice(void) {
    char byte;
    close(childs_event);  // the descriptor, which fork has copied
    fault(3);
    CHECK(write(faulted[1], "f", 1) == 1);
    CHECK(read(go_on[0], &byte, 1) == 1);
    fault(3);
}

static int samples_of(struct ring* ring, int pid) {
    int found = 0;
    Header* record;
    while ((record = next_of(ring, PERF_RECORD_SAMPLE))) found += *(uint32_t*)(record + 1) == (uint32_t)pid;
    return found;
}

BEHAVIOUR(closed_above, NOTHING) {
    SUCCEEDS(pipe(go_on));
    SUCCEEDS(pipe(faulted));
    run_on(0);
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    int buffer = open_of(attr, 0, 0, -1);
    struct ring* ring = ring_of(buffer, 8);
    attr.inherit = 1;
    attr.disabled = 0;
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_TID;
    int event = childs_event = open_of(attr, 0, 0, -1);
    SUCCEEDS(ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, buffer));
    struct child child = start(fault_twice);
    let_go(child);
    char byte;
    EQUAL(read(faulted[0], &byte, 1), 1);
    close(event);
    COMPARE(samples_of(ring, child.pid), >=, 3);
    EQUAL(write(go_on[1], "g", 1), 1);
    EQUAL(wait_for(child.pid), 0);
    EQUAL(samples_of(ring, child.pid), 0);
}
