// A signal that nobody handles ends the task.
#include "../behaviour.h"

static void fault_until_dead(void) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    int event = open_event(attr);
    fcntl(event, F_SETOWN, getpid());
    fcntl(event, F_SETFL, O_RDWR | O_ASYNC);
    enable(event);
    fault(10);
}

BEHAVIOUR(unhandled_signal, NOTHING) {
    struct child child = start(fault_until_dead);
    let_go(child);
    int status = wait_for(child.pid);
    CHECK(WIFSIGNALED(status));
    EQUAL(WTERMSIG(status), SIGIO);
}
