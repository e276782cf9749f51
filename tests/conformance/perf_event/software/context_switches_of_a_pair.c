// Two processes on one CPU that wait for each other: a switch for each turn.
#include "../behaviour.h"

static int there[2], back[2];

static void answer_hundred(void) {
    char byte;
    for (int i = 0; i < 100; i++) {
        CHECK(read(there[0], &byte, 1) == 1);
        CHECK(write(back[1], &byte, 1) == 1);
    }
}

BEHAVIOUR(context_switches_of_a_pair, ROOT) {
    SUCCEEDS(pipe(there));
    SUCCEEDS(pipe(back));
    run_on(0);
    Attr attr = SOFTWARE(CONTEXT_SWITCHES);
    attr.exclude_kernel = 0;
    int event = open_event(attr);
    struct child child = start(answer_hundred);
    let_go(child);
    enable(event);
    char byte = 0;
    for (int i = 0; i < 100; i++) {
        CHECK(write(there[1], &byte, 1) == 1);
        CHECK(read(back[0], &byte, 1) == 1);
    }
    disable(event);
    COMPARE(count_of(event), >=, 90);
    COMPARE(count_of(event), <, 250);
    EQUAL(wait_for(child.pid), 0);
}
