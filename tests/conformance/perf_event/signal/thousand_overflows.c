// 100 x a million instructions with a period of 100,000: 1000 overflows, whatever the handler does to the event.
#include "../behaviour.h"

static volatile int thousand, others, event_of_thousand;

static void disable_and_enable(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    ioctl(event_of_thousand, PERF_EVENT_IOC_DISABLE, 0);
    thousand += info->si_code == POLL_IN, others += info->si_code != POLL_IN;
    ioctl(event_of_thousand, PERF_EVENT_IOC_ENABLE, 1);
}

BEHAVIOUR(thousand_overflows, PMU) {
    struct sigaction action = {.sa_sigaction = disable_and_enable, .sa_flags = SA_SIGINFO};
    sigaction(SIGRTMIN, &action, NULL);
    Attr attr = INSTRUCTIONS;
    attr.sample_period = 100000;
    attr.sample_type = PERF_SAMPLE_IP;
    attr.wakeup_events = 1;
    int event = event_of_thousand = open_event(attr);
    CHECK(map(event, 8) != MAP_FAILED);
    SUCCEEDS(fcntl(event, F_SETOWN, getpid()));
    SUCCEEDS(fcntl(event, F_SETSIG, SIGRTMIN));
    SUCCEEDS(fcntl(event, F_SETFL, O_RDWR | O_NONBLOCK | O_ASYNC));
    reset(event);
    enable(event);
    for (int i = 0; i < 100; i++) million();
    disable(event);
    EQUAL(thousand, 1000);
    EQUAL(others, 0);
}
