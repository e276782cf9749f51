// O_ASYNC with F_SETSIG: si_code POLL_IN, the descriptor, and the band.
#include "../behaviour.h"

static volatile int count, code, descriptor;
static volatile long band;

static void tell_overflow(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    count++, code = info->si_code, descriptor = info->si_fd, band = info->si_band;
}

BEHAVIOUR(overflow_says_why, NOTHING) {
    struct sigaction action = {.sa_sigaction = tell_overflow, .sa_flags = SA_SIGINFO};
    sigaction(SIGRTMIN, &action, NULL);
    raise(SIGRTMIN);  // so that no page of the handler's is missing
    count = 0;
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.wakeup_events = 1;
    int event = open_event(attr);
    CHECK(map(event, 1) != MAP_FAILED);
    SUCCEEDS(fcntl(event, F_SETOWN, getpid()));
    SUCCEEDS(fcntl(event, F_SETSIG, SIGRTMIN));
    SUCCEEDS(fcntl(event, F_SETFL, O_RDWR | O_ASYNC));
    char* at = fresh(3);
    enable(event);
    touch(at, 1);
    disable(event);
    EQUAL(count, 1);
    EQUAL(code, POLL_IN);
    EQUAL(descriptor, event);
    EQUAL(band, POLLIN | POLLRDNORM);
}
