// Without F_SETSIG it is SIGIO, and from the kernel.
#include "../behaviour.h"

static volatile int sigio_count, sigio_code;

static void tell_sigio(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    sigio_count++, sigio_code = info->si_code;
}

BEHAVIOUR(sigio_without_setsig, NOTHING) {
    struct sigaction action = {.sa_sigaction = tell_sigio, .sa_flags = SA_SIGINFO};
    sigaction(SIGIO, &action, NULL);
    raise(SIGIO);  // so that no page of the handler's is missing
    sigio_count = 0;
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.wakeup_events = 1;
    int event = open_event(attr);
    CHECK(map(event, 1) != MAP_FAILED);
    SUCCEEDS(fcntl(event, F_SETOWN, getpid()));
    SUCCEEDS(fcntl(event, F_SETFL, O_RDWR | O_ASYNC));
    char* at = fresh(1);
    enable(event);
    touch(at, 1);
    disable(event);
    EQUAL(sigio_count, 1);
    EQUAL(sigio_code, SI_KERNEL);
}
