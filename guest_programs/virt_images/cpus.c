/* CPUs: what each does, and the interrupts that come to it. */
#include "bare.h"

struct cpu cpus[MOST_CPUS];

int64_t call_hvc(uint64_t, uint64_t, uint64_t, uint64_t);
int64_t call_smc(uint64_t, uint64_t, uint64_t, uint64_t);

int64_t firmware(uint32_t function, uint64_t first, uint64_t second, uint64_t third) {
    return (board.by_smc ? call_smc : call_hvc)(function, first, second, third);
}

unsigned number_of_this_cpu(void) {
    uint64_t affinity = READ(mpidr_el1) & 0xffffff;
    for (unsigned number = 0; number < board.cpus; number++)
        if (board.affinities[number] == affinity) return number;
    return 0;
}

struct cpu* this_cpu(void) { return &cpus[number_of_this_cpu()]; }

void unmask(void) { __asm__ volatile("msr daifclr, #2\n\tisb" : : : "memory"); }

void mask(void) { __asm__ volatile("msr daifset, #2\n\tisb" : : : "memory"); }

void interrupt(void) {
    struct cpu* me = this_cpu();
    unsigned number = (unsigned)READ(s3_0_c12_c12_0); /* ICC_IAR1_EL1 */
    unsigned which = me->taken % 16;
    BARRIER();
    me->interrupts[which] = number;
    me->priorities[which] = (unsigned)READ(s3_0_c12_c11_3); /* ICC_RPR_EL1 */
    me->taken++;
    if (number == SPURIOUS) return;
    if (me->during) me->during(number);
    BARRIER();
    WRITE(s3_0_c12_c12_1, number); /* ICC_EOIR1_EL1 */
}

void exception(uint64_t vector, uint64_t esr, uint64_t elr) {
    check(false, "an exception: its vector", vector);
    check(false, "ESR_EL1", esr);
    check(false, "ELR_EL1", elr);
    end();
}

uint64_t ticks(void) {
    __asm__ volatile("isb" : : : "memory");
    return READ(cntvct_el0);
}

/* Within a second of the board's own time */
bool waits_for(bool (*happens)(unsigned), unsigned argument) {
    uint64_t end_ticks = ticks() + READ(cntfrq_el0);
    while (!happens(argument))
        if (ticks() > end_ticks) return happens(argument);
    return true;
}

static bool has_taken(unsigned count) { return this_cpu()->taken >= count; }

bool takes(unsigned count) { return waits_for(has_taken, count) && takes_none() && this_cpu()->taken == count; }

/* No further one in some time */
bool takes_none(void) {
    unsigned before = this_cpu()->taken;
    for (uint64_t end_ticks = ticks() + READ(cntfrq_el0) / 50000; ticks() < end_ticks;) {
    }
    return this_cpu()->taken == before;
}

void forget(void) {
    this_cpu()->taken = 0;
    this_cpu()->during = 0;
}

void works(unsigned number, unsigned control, unsigned masks, unsigned stack) {
    struct cpu* me = &cpus[number];
    me->state_at_start = control << 8 | masks << 4 | stack;
    start_interface();
    me->is_online = true;
    for (;;) {
        while (!me->job) __asm__ volatile("wfe" : : : "memory");
        BARRIER();
        me->job();
        BARRIER();
        me->job = 0;
    }
}

void start_on(unsigned cpu, void (*job)(void)) {
    BARRIER();
    cpus[cpu].job = job;
    BARRIER();
    __asm__ volatile("sev" : : : "memory");
}

bool is_done(unsigned cpu) { return !cpus[cpu].job; }

bool others_do(void (*job)(void)) {
    bool all = true;
    for (unsigned cpu = 1; cpu < board.cpus; cpu++) start_on(cpu, job);
    for (unsigned cpu = 1; cpu < board.cpus; cpu++) all &= waits_for(is_done, cpu);
    return all;
}
