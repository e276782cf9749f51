// Two events that sample overflow as often as their periods say, each.
#include "../behaviour.h"

static volatile int of_first, of_second, first_of_two;

static void count_each(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    *(info->si_fd == first_of_two ? &of_first : &of_second) += 1;
}

BEHAVIOUR(two_periods, PMU) {
    struct sigaction action = {.sa_sigaction = count_each, .sa_flags = SA_SIGINFO};
    sigaction(SIGRTMIN, &action, NULL);
    int events[2];
    for (int i = 0; i < 2; i++) {
        Attr attr = INSTRUCTIONS;
        attr.sample_period = 100000 * (i + 1);
        attr.wakeup_events = 1;
        events[i] = open_event(attr);
        CHECK(map(events[i], 8) != MAP_FAILED);
        SUCCEEDS(fcntl(events[i], F_SETOWN, getpid()));
        SUCCEEDS(fcntl(events[i], F_SETSIG, SIGRTMIN));
        SUCCEEDS(fcntl(events[i], F_SETFL, O_RDWR | O_NONBLOCK | O_ASYNC));
    }
    first_of_two = events[0];
    enable(events[0]);
    enable(events[1]);
    for (int i = 0; i < 10; i++) million();
    disable(events[0]);
    disable(events[1]);
    COMPARE(of_second, >=, 50);
    EQUAL(of_first, count_of(events[0]) / 100000);
    EQUAL(of_second, count_of(events[1]) / 200000);
}
