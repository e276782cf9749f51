// DISABLE and ENABLE of the event that was opened go to all that inherited it.
#include "../behaviour.h"

static int steps[2], answers[2];

static void fault_when_told(void) {
    char byte;
    while (read(steps[0], &byte, 1) == 1 && byte == 'f') {
        fault(50);
        CHECK(write(answers[1], "d", 1) == 1);
    }
}

BEHAVIOUR(orders_go_to_children, NOTHING) {
    SUCCEEDS(pipe(steps));
    SUCCEEDS(pipe(answers));
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.inherit = 1;
    int event = open_event(attr);
    enable(event);
    struct child child = start(fault_when_told);
    let_go(child);
    char byte;
    CHECK(write(steps[1], "f", 1) == 1 && read(answers[0], &byte, 1) == 1);
    disable(event);
    uint64_t count = count_of(event);
    CHECK(write(steps[1], "f", 1) == 1 && read(answers[0], &byte, 1) == 1);
    EQUAL(count_of(event), count);
    enable(event);
    CHECK(write(steps[1], "f", 1) == 1 && read(answers[0], &byte, 1) == 1);
    COMPARE(count_of(event), >=, count + 50);
    CHECK(write(steps[1], "e", 1) == 1);
    EQUAL(wait_for(child.pid), 0);
}
