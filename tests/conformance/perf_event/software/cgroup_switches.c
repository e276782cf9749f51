// A CPU that stays among tasks of one group switches none, however often it switches tasks.
#include "../behaviour.h"

static int calls[2], answers_to_calls[2];

static void answer_twenty(void) {
    char byte;
    for (int i = 0; i < 20; i++) {
        CHECK(read(calls[0], &byte, 1) == 1);
        CHECK(write(answers_to_calls[1], &byte, 1) == 1);
    }
}

BEHAVIOUR(cgroup_switches, A_MACHINE) {
    SUCCEEDS(pipe(calls));
    SUCCEEDS(pipe(answers_to_calls));
    run_on(0);
    Attr attr = SOFTWARE(CGROUP_SWITCHES);
    attr.exclude_kernel = 0;
    int event = try_open(attr, -1, 0, -1, 0);
    if (event < 0) SKIP("no such event");
    attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
    int switches = open_of(attr, -1, 0, -1);
    struct child child = start(answer_twenty);
    let_go(child);
    enable(event), enable(switches);
    char byte = 0;
    for (int i = 0; i < 20; i++) {
        CHECK(write(calls[1], &byte, 1) == 1);
        CHECK(read(answers_to_calls[0], &byte, 1) == 1);
    }
    disable(switches), disable(event);
    COMPARE(count_of(switches), >=, 20);
    EQUAL(count_of(event), 0);
    EQUAL(wait_for(child.pid), 0);
}
