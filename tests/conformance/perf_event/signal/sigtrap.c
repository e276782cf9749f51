// attr.sigtrap: SIGTRAP with TRAP_PERF, the address, the type and sig_data, at once.
#include "../behaviour.h"

static volatile int traps, trap_code;
static volatile uint64_t trap_data, trap_address;
static volatile uint32_t trap_type, trap_flags;

static void tell_trap(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    traps++, trap_code = info->si_code, trap_address = (uint64_t)info->si_addr;
    trap_data = *(uint64_t*)((char*)info + 24);
    trap_type = *(uint32_t*)((char*)info + 32), trap_flags = *(uint32_t*)((char*)info + 36);
}

BEHAVIOUR(sigtrap, NOTHING) {
    struct sigaction action = {.sa_sigaction = tell_trap, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    raise(SIGTRAP);  // so that no page of the handler's is missing
    traps = 0;
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sigtrap = attr.remove_on_exec = 1;
    attr.sig_data = 0x123456789abcdef0;
    int event = open_event(attr);
    char* at = fresh(1);
    enable(event);
    touch(at, 1);
    disable(event);
    EQUAL(traps, 1);
    EQUAL(trap_code, 6);  // TRAP_PERF
    EQUAL(trap_data, 0x123456789abcdef0);
    EQUAL(trap_type, PERF_TYPE_SOFTWARE);
    EQUAL(trap_flags, 0);
    EQUAL(trap_address, at);
}
