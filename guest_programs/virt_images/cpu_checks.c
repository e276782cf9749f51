/* The firmware, and several CPUs. */
#include "bare.h"

enum { SUCCESS = 0, NOT_SUPPORTED = -1, INVALID_PARAMETERS = -2, ALREADY_ON = -4 };
enum { ON = 0, OFF = 1 };
enum { SGI = 6, SPI = 101, ROUNDS = 300 };

void secondary(void);

static int64_t turn_on(unsigned cpu) {
    cpus[cpu].is_online = false;
    BARRIER();
    return firmware(CPU_ON, board.affinities[cpu], (uint64_t)secondary, cpu);
}

static bool is_online(unsigned cpu) { return cpus[cpu].is_online; }

static bool is_off(unsigned cpu) { return firmware(AFFINITY_INFO, board.affinities[cpu], 0, 0) == OFF; }

/* Until the timer comes, which is masked all the time */
static void suspend(void) {
    enum { TIMER = 27 };
    expect(firmware(PSCI_FEATURES, CPU_SUSPEND, 0, 0), SUCCESS, "PSCI_FEATURES: CPU_SUSPEND");
    expect(firmware(CPU_SUSPEND, 0xfffe0000, 0, 0), INVALID_PARAMETERS, "CPU_SUSPEND: no such state");
    uint64_t wait = READ(cntfrq_el0) / 100, before = ticks();
    set_priority(TIMER, 0x80);
    enable(TIMER, true);
    WRITE(cntv_cval_el0, before + wait);
    WRITE(cntv_ctl_el0, 1);
    expect(firmware(CPU_SUSPEND, 0, 0, 0), SUCCESS, "CPU_SUSPEND: standby");
    check(ticks() - before >= wait, "CPU_SUSPEND: until an interrupt", ticks() - before);
    WRITE(cntv_ctl_el0, 0);
    enable(TIMER, false);
}

void check_firmware(void) {
    expect(firmware(PSCI_VERSION, 0, 0, 0), 0x10001, "PSCI_VERSION: 1.1");
    expect(firmware(PSCI_FEATURES, CPU_ON, 0, 0), SUCCESS, "PSCI_FEATURES: CPU_ON");
    expect(firmware(PSCI_FEATURES, 0x84001234, 0, 0), NOT_SUPPORTED, "PSCI_FEATURES: no function");
    expect(firmware(CPU_ON, 0xff00ff, 0x40080000, 0), INVALID_PARAMETERS, "CPU_ON: no such CPU");
    expect(firmware(CPU_ON, board.affinities[0], 0x40080000, 0), ALREADY_ON, "CPU_ON: of this CPU");
    expect(firmware(AFFINITY_INFO, 0xff00ff, 0, 0), INVALID_PARAMETERS, "AFFINITY_INFO: no such CPU");
    expect(firmware(AFFINITY_INFO, board.affinities[0], 0, 0), ON, "AFFINITY_INFO: this CPU");
    expect(firmware(0x84001234, 0, 0, 0), NOT_SUPPORTED, "no function");
    expect(firmware(0xC4000000, 0, 0, 0), NOT_SUPPORTED, "PSCI_VERSION has no form of 64 bits");
    suspend();
    for (unsigned cpu = 1; cpu < board.cpus; cpu++) {
        check(is_off(cpu), "AFFINITY_INFO: off", cpu);
        expect(turn_on(cpu), SUCCESS, "CPU_ON");
        check(waits_for(is_online, cpu), "CPU_ON: it executes, with its context", cpu);
        expect(cpus[cpu].state_at_start, 0xf1, "CPU_ON: MMU off, all masked, SP_EL1");
        expect(firmware(AFFINITY_INFO, board.affinities[cpu], 0, 0), ON, "AFFINITY_INFO: on");
        expect(firmware(CPU_ON, board.affinities[cpu], 0, 0), ALREADY_ON, "CPU_ON: it is on already");
    }
}

/* ---- a lock */

static volatile uint32_t lock;
static volatile uint64_t counted, sum_of_squares;

static void take(void) {
    uint32_t is_taken, fails;
    __asm__ volatile(
        "   sevl\n"
        "1: wfe\n"
        "2: ldaxr %w0, [%2]\n"
        "   cbnz %w0, 1b\n"
        "   stxr %w1, %w3, [%2]\n"
        "   cbnz %w1, 2b"
        : "=&r"(is_taken), "=&r"(fails)
        : "r"(&lock), "r"(1)
        : "memory");
}

static void release(void) { __asm__ volatile("stlr wzr, [%0]\n\tdsb sy\n\tsev" : : "r"(&lock) : "memory"); }

static void count(void) {
    for (unsigned round = 0; round < ROUNDS; round++) {
        take();
        uint64_t before = counted;
        sum_of_squares += 2 * before + 1;
        counted = before + 1;
        release();
    }
}

/* ---- interrupts of others */

static void listen(void) {
    enable(SGI, true);
    set_priority(SGI, 0x80);
    forget();
    unmask();
    bool comes = takes(1);
    mask();
    if (!comes || this_cpu()->interrupts[0] != SGI) this_cpu()->taken = 0xff;
}

static void listen_to_spi(void) {
    forget();
    unmask();
    bool comes = takes(1);
    mask();
    if (!comes || this_cpu()->interrupts[0] != SPI) this_cpu()->taken = 0xff;
}

static bool listens(unsigned cpu) { return cpus[cpu].taken == 0 || is_done(cpu); }

static void start_listening(unsigned cpu, void (*job)(void)) {
    cpus[cpu].taken = 0xfe; /* until it has forgotten */
    start_on(cpu, job);
    waits_for(listens, cpu);
}

static void off(void) { firmware(CPU_OFF, 0, 0, 0); }

void check_other_cpus(void) {
    for (unsigned cpu = 1; cpu < board.cpus; cpu++) start_on(cpu, count);
    count();
    bool all = true;
    for (unsigned cpu = 1; cpu < board.cpus; cpu++) all &= waits_for(is_done, cpu);
    check(all && counted == board.cpus * ROUNDS, "a lock: all count", counted);
    check(sum_of_squares == counted * counted, "a lock: one at a time", sum_of_squares);

    for (unsigned cpu = 1; cpu < board.cpus; cpu++) start_listening(cpu, listen);
    forget();
    enable(SGI, true);
    unmask();
    send_to_others(SGI);
    for (unsigned cpu = 1; cpu < board.cpus; cpu++)
        check(waits_for(is_done, cpu) && cpus[cpu].taken == 1, "SGI: to all others", cpus[cpu].taken);
    check(takes_none(), "SGI: not to this one", this_cpu()->taken);
    mask();
    enable(SGI, false);

    unsigned list = 0;
    for (unsigned cpu = 1; cpu < board.cpus; cpu += 2) {
        start_listening(cpu, listen);
        list |= 1u << cpu;
    }
    send_to_list(SGI, list);
    for (unsigned cpu = 1; cpu < board.cpus; cpu += 2)
        check(waits_for(is_done, cpu) && cpus[cpu].taken == 1, "SGI: to a list", cpus[cpu].taken);
    for (unsigned cpu = 1; cpu < board.cpus; cpu++) {
        start_listening(cpu, listen);
        send_to(SGI, board.affinities[cpu]);
        check(waits_for(is_done, cpu) && cpus[cpu].taken == 1, "SGI: to one", cpus[cpu].taken);
        start_listening(cpu, listen_to_spi);
        route(SPI, board.affinities[cpu]);
        set_priority(SPI, 0x80);
        enable(SPI, true);
        set_pending(SPI, true);
        check(waits_for(is_done, cpu) && cpus[cpu].taken == 1, "SPI: routed to it", cpus[cpu].taken);
    }
    for (unsigned cpu = 1; cpu < board.cpus; cpu++) {
        start_on(cpu, off);
        check(waits_for(is_off, cpu), "CPU_OFF", cpu);
        cpus[cpu].job = 0;
        check(turn_on(cpu) == SUCCESS && waits_for(is_online, cpu), "CPU_ON: again", cpu);
        expect(cpus[cpu].state_at_start, 0xf1, "CPU_ON: again as at first");
    }
}
