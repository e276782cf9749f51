// attr.sigtrap on a watchpoint: the signal comes with the address that was hit.
#include "../behaviour.h"

static volatile uint64_t trapped;
static volatile int hits, event_of_hits;
static void* volatile hit_address;

static void tell_hit(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    hits++, hit_address = info->si_addr;
    ioctl(event_of_hits, PERF_EVENT_IOC_DISABLE, 0);  // on AArch64 the store would hit again, for ever
}

BEHAVIOUR(sigtrap_at_once, SLOTS) {
    struct sigaction action = {.sa_sigaction = tell_hit, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    Attr attr = attr_of(PERF_TYPE_BREAKPOINT, 0);
    attr.bp_type = HW_BREAKPOINT_W;
    attr.bp_addr = (unsigned long)&trapped;
    attr.bp_len = 8;
    attr.sample_period = 1;
    attr.sigtrap = attr.remove_on_exec = 1;
    event_of_hits = open_event(attr);
    enable(event_of_hits);
    trapped = 7;
    EQUAL(hits, 1);
    EQUAL(hit_address, &trapped);
    EQUAL(trapped, 7);
}
