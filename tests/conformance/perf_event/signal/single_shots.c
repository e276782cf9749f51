// REFRESH(1) in the handler: each of ten overflows says POLL_HUP.
#include "../behaviour.h"

static volatile int shots, not_shots, event_of_shots;

static void shoot_again(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    shots += info->si_code == POLL_HUP, not_shots += info->si_code != POLL_HUP;
    ioctl(event_of_shots, PERF_EVENT_IOC_REFRESH, 1);
}

BEHAVIOUR(single_shots, PMU) {
    struct sigaction action = {.sa_sigaction = shoot_again, .sa_flags = SA_SIGINFO};
    sigaction(SIGRTMIN, &action, NULL);
    Attr attr = INSTRUCTIONS;
    attr.sample_period = 100000;
    attr.sample_type = PERF_SAMPLE_IP;
    attr.wakeup_events = 1;
    int event = event_of_shots = open_event(attr);
    CHECK(map(event, 8) != MAP_FAILED);
    SUCCEEDS(fcntl(event, F_SETOWN, getpid()));
    SUCCEEDS(fcntl(event, F_SETSIG, SIGRTMIN));
    SUCCEEDS(fcntl(event, F_SETFL, O_RDWR | O_NONBLOCK | O_ASYNC));
    SUCCEEDS(ioctl(event, PERF_EVENT_IOC_REFRESH, 1));
    million();
    disable(event);
    EQUAL(shots, 10);
    EQUAL(not_shots, 0);
}
