// The last overflow of IOC_REFRESH says POLL_HUP, the others POLL_IN.
#include "../behaviour.h"

static volatile int hups, ins;

static void count_reasons(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    hups += info->si_code == POLL_HUP, ins += info->si_code == POLL_IN;
}

BEHAVIOUR(refresh_hangs_up, NOTHING) {
    struct sigaction action = {.sa_sigaction = count_reasons, .sa_flags = SA_SIGINFO};
    sigaction(SIGRTMIN, &action, NULL);
    raise(SIGRTMIN);  // so that no page of the handler's is missing
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.wakeup_events = 1;
    int event = open_event(attr);
    CHECK(map(event, 1) != MAP_FAILED);
    SUCCEEDS(fcntl(event, F_SETOWN, getpid()));
    SUCCEEDS(fcntl(event, F_SETSIG, SIGRTMIN));
    SUCCEEDS(fcntl(event, F_SETFL, O_RDWR | O_ASYNC));
    SUCCEEDS(ioctl(event, PERF_EVENT_IOC_REFRESH, 3));
    char* at = fresh(10);
    for (int i = 0; i < 10; i++) touch(at + i * page_size(), 1);
    EQUAL(hups, 1);
    EQUAL(ins, 2);
}
