// Children of children count, too.
#include "../behaviour.h"

static void fork_and_fault(void) {
    int pid = fork();
    if (pid == 0) {
        fault(60);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

BEHAVIOUR(grandchildren, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.inherit = 1;
    int event = open_event(attr);
    enable(event);
    uint64_t before = count_of(event);
    struct child child = start(fork_and_fault);
    finish(child);
    COMPARE(count_of(event), >=, before + 60);
}
