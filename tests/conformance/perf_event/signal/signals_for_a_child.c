// An event of a child signals its opener: 10 x a million instructions, a period of a million, 10 overflows.
#include "../behaviour.h"

static volatile int child_overflows;

static void count_childs(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    child_overflows += info->si_code == POLL_IN;
}

static void ten_millions(void) {
    for (int i = 0; i < 10; i++) million();
}

BEHAVIOUR(signals_for_a_child, PMU) {
    struct sigaction action = {.sa_sigaction = count_childs, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGRTMIN, &action, NULL);
    struct child child = start(ten_millions);
    Attr attr = INSTRUCTIONS;
    attr.sample_period = 1000000;
    attr.disabled = 0;
    attr.wakeup_events = 1;
    int event = open_of(attr, child.pid, -1, -1);
    CHECK(map(event, 1) != MAP_FAILED);
    SUCCEEDS(fcntl(event, F_SETOWN, getpid()));
    SUCCEEDS(fcntl(event, F_SETSIG, SIGRTMIN));
    SUCCEEDS(fcntl(event, F_SETFL, O_RDWR | O_NONBLOCK | O_ASYNC));
    finish(child);
    EQUAL(child_overflows, 10);
    EQUAL(child_overflows, count_of(event) / 1000000);
}
