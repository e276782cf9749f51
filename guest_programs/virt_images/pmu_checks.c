/* The PMU by its registers: Arm ARM, "The Performance Monitors Extension". An event that PMCEID<n>_EL0 does not tell is
 * not looked at: then a check holds. */
#include "bare.h"

enum { E = 1, P = 2, C = 4, LC = 64 }; /* PMCR_EL0 */
enum {
    SW_INCR = 0,
    INST_RETIRED = 8,
    CPU_CYCLES = 0x11,
    MEM_ACCESS = 0x13,
    NO_EVENT = 0x1f,
    CHAIN = 0x1e
}; /* events */
enum { PPI = 23, TIMES = 100 };
#define CYCLE_COUNTER (1u << 31)
#define NOT_EL1 (1u << 31) /* PMEVTYPER<n>_EL0.P */
#define NOT_EL0 (1u << 30) /* ... U */
#define OF_EL0 0x40000000ull
#define LAST 0xffffffffull /* before 32 bits overflow */

uint64_t retired(uint64_t rounds);

static bool has(unsigned event) {
    uint64_t events = event < 32 ? READ(pmceid0_el0) : READ(pmceid1_el0);
    return events >> event % 32 & 1;
}

static unsigned counters(void) { return READ(pmcr_el0) >> 11 & 31; }

static void expect_of(unsigned event, int64_t found, int64_t wanted, const char* what) {
    expect(has(event) ? found : wanted, wanted, what);
}

static uint32_t counter(unsigned number) {
    WRITE(pmselr_el0, number);
    return (uint32_t)READ(pmxevcntr_el0);
}

static void set_counter(unsigned number, uint32_t type, uint64_t value) {
    WRITE(pmselr_el0, number);
    WRITE(pmxevtyper_el0, type);
    WRITE(pmxevcntr_el0, value);
}

/* All off, at zero, and the select register on the cycle counter */
static void reset(void) {
    WRITE(pmcr_el0, P | C | LC);
    WRITE(pmcntenclr_el0, ~0u);
    WRITE(pmintenclr_el1, ~0u);
    WRITE(pmovsclr_el0, ~0u);
    WRITE(pmccfiltr_el0, 0);
    WRITE(pmselr_el0, 31);
}

static void increment(unsigned mask, unsigned times) {
    for (unsigned time = 0; time < times; time++) WRITE(pmswinc_el0, mask);
}

static void cycles(void) {
    reset();
    takes_none();
    expect((int64_t)READ(pmccntr_el0), 0, "PMU: the cycle counter stands while E is 0");
    WRITE(pmcntenset_el0, CYCLE_COUNTER);
    WRITE(pmcr_el0, E | LC);
    bool grows = true;
    for (unsigned time = 0; time < TIMES; time++) {
        uint64_t before = READ(pmccntr_el0);
        takes_none();
        grows &= READ(pmccntr_el0) > before;
    }
    check(grows, "PMU: cycles are counted", READ(pmccntr_el0));
    WRITE(pmccntr_el0, ~0ull - 5);
    takes_none();
    WRITE(pmcr_el0, LC);
    expect((int64_t)READ(pmovsset_el0), CYCLE_COUNTER, "PMU: the cycle counter overflows from 64 bits");
    WRITE(pmcr_el0, C | LC);
    expect((int64_t)READ(pmccntr_el0), 0, "PMU: C sets it to zero");
    expect((int64_t)READ(pmovsset_el0), CYCLE_COUNTER, "PMU: but not its overflow");
}

static void configuration(void) {
    reset();
    bool keeps = true;
    for (unsigned number = 0; number < counters(); number++) set_counter(number, NOT_EL0 | number, number + 7);
    for (unsigned number = 0; number < counters(); number++) {
        WRITE(pmselr_el0, number);
        keeps &= READ(pmxevtyper_el0) == (NOT_EL0 | number) && counter(number) == number + 7;
    }
    check(keeps, "PMU: each counter keeps what is its own", counters());
    check(READ(pmevtyper1_el0) == (NOT_EL0 | 1) && (uint32_t)READ(pmevcntr1_el0) == 8, "PMU: by both names", 0);
    WRITE(pmcr_el0, P);
    bool zero = true;
    for (unsigned number = 0; number < counters(); number++) zero &= counter(number) == 0;
    check(zero, "PMU: P sets all to zero", 0);
    uint64_t all = CYCLE_COUNTER | ((1ull << counters()) - 1);
    WRITE(pmcntenset_el0, ~0u);
    expect((int64_t)(uint32_t)READ(pmcntenclr_el0), (int64_t)all, "PMU: as many enable bits as counters");
    WRITE(pmcntenclr_el0, 2);
    expect((int64_t)(uint32_t)READ(pmcntenset_el0), (int64_t)(all & ~2ull), "PMU: one is cleared");
    WRITE(pmselr_el0, 31);
    WRITE(pmxevtyper_el0, NOT_EL1);
    expect((int64_t)READ(pmccfiltr_el0), NOT_EL1, "PMU: PMSELR_EL0 31 is the cycle counter's filter");
    reset();
    set_counter(0, NO_EVENT, 0);
    WRITE(pmcntenset_el0, 1);
    WRITE(pmcr_el0, E);
    takes_none();
    WRITE(pmcr_el0, 0);
    expect(counter(0), 0, "PMU: an event that is none is counted as zero");
    check(has(SW_INCR) && has(CPU_CYCLES), "PMU: SW_INCR and CPU_CYCLES are told", READ(pmceid0_el0));
}

static void increments(void) {
    reset();
    set_counter(0, SW_INCR, 0);
    set_counter(1, SW_INCR, 0);
    set_counter(2, NO_EVENT, 0);
    increment(7, TIMES);
    WRITE(pmcr_el0, E);
    increment(7, TIMES);
    expect(counter(0), 0, "SW_INCR: not while it is disabled");
    WRITE(pmcntenset_el0, 5);
    increment(7, TIMES);
    increment(6, TIMES);
    expect(counter(0), TIMES, "SW_INCR: those whose bits are written");
    expect(counter(1), 0, "SW_INCR: and that are enabled");
    expect(counter(2), 0, "SW_INCR: and count it");
    WRITE(pmcr_el0, 0);
    set_counter(0, SW_INCR, LAST - TIMES / 2);
    WRITE(pmcr_el0, E);
    increment(1, TIMES);
    expect(counter(0), TIMES / 2 - 1, "SW_INCR: wraps at 32 bits");
    expect((int64_t)READ(pmovsset_el0), 1, "SW_INCR: and overflows");
    WRITE(pmcr_el0, 0);
    set_counter(0, SW_INCR | NOT_EL1, 0);
    WRITE(pmcr_el0, E);
    increment(1, TIMES);
    expect(counter(0), 0, "SW_INCR: not from EL1, by its filter");
}

/* The loads and stores of its own: one each a round */
static void accesses(uint64_t rounds) {
    uint64_t cell = 0, found;
    __asm__ volatile(
        "   msr pmcr_el0, %3\n\tisb\n"
        "1: ldr %1, [%2]\n"
        "   str %1, [%2]\n"
        "   subs %0, %0, #1\n"
        "   b.ne 1b\n"
        "   msr pmcr_el0, xzr\n\tisb"
        : "+r"(rounds), "=&r"(found)
        : "r"(&cell), "r"((uint64_t)E)
        : "memory", "cc");
}

static void counts(void) {
    reset();
    set_counter(0, INST_RETIRED, 0);
    set_counter(1, INST_RETIRED | NOT_EL1, 0);
    set_counter(2, INST_RETIRED, 5);
    WRITE(pmcntenset_el0, 3);
    expect_of(INST_RETIRED, (int64_t)retired(1000), 3003, "INST_RETIRED: a loop");
    expect(counter(1), 0, "INST_RETIRED: by a filter none of EL1's");
    expect(counter(2), 5, "INST_RETIRED: what is not enabled stands");
    reset();
    set_counter(0, MEM_ACCESS, 0);
    set_counter(1, MEM_ACCESS, LAST - 19);
    WRITE(pmcntenset_el0, 3);
    accesses(20);
    expect_of(MEM_ACCESS, counter(0), 40, "MEM_ACCESS: two a round");
    expect_of(MEM_ACCESS, counter(1), 20, "MEM_ACCESS: and another counter, which wraps");
    expect_of(MEM_ACCESS, (int64_t)READ(pmovsset_el0), 2, "MEM_ACCESS: and overflows");
}

/* The low half of a pair by increments, the high half by CHAIN */
static void chains(void) {
    reset();
    set_counter(0, SW_INCR, LAST - 1);
    set_counter(1, CHAIN, 0);
    WRITE(pmcntenset_el0, 3);
    WRITE(pmcr_el0, E);
    increment(1, TIMES);
    WRITE(pmcr_el0, 0);
    expect_of(CHAIN, counter(0), TIMES - 2, "CHAIN: the low half goes on");
    expect_of(CHAIN, counter(1), 1, "CHAIN: the high half counts its overflow");
    expect_of(CHAIN, (int64_t)READ(pmovsset_el0), 1, "CHAIN: which is told");
    reset();
    set_counter(0, SW_INCR, LAST);
    set_counter(1, CHAIN, LAST);
    WRITE(pmcntenset_el0, 3);
    WRITE(pmcr_el0, E);
    increment(1, 1);
    WRITE(pmcr_el0, 0);
    expect_of(CHAIN, counter(0) | counter(1), 0, "CHAIN: both halves wrap");
    expect_of(CHAIN, (int64_t)READ(pmovsset_el0), 3, "CHAIN: and both overflow");
    reset();
    set_counter(0, SW_INCR, LAST);
    set_counter(1, CHAIN, 0);
    WRITE(pmcntenset_el0, 1);
    WRITE(pmcr_el0, E);
    increment(1, 1);
    WRITE(pmcntenset_el0, 2);
    expect_of(CHAIN, counter(1), 0, "CHAIN: not while the high half is disabled");
    set_counter(0, SW_INCR, LAST);
    increment(1, 1);
    expect_of(CHAIN, counter(1), 1, "CHAIN: from when it is enabled, though the low half runs");
    WRITE(pmcntenclr_el0, 1);
    set_counter(0, SW_INCR, LAST);
    increment(1, 1);
    expect_of(CHAIN, counter(1), 1, "CHAIN: not while the low half is disabled");
}

static void lower(unsigned interrupt) {
    if (interrupt == PPI) WRITE(pmovsclr_el0, ~0u);
}

static void interrupts(void) {
    struct cpu* me = this_cpu();
    reset();
    forget();
    me->during = lower;
    set_priority(PPI, 0x80);
    enable(PPI, true);
    mask();
    set_counter(0, SW_INCR, LAST);
    set_counter(1, SW_INCR, LAST);
    WRITE(pmcntenset_el0, 3);
    WRITE(pmintenset_el1, 1);
    WRITE(pmcr_el0, E);
    increment(2, 1);
    check(!is_pending(PPI) && READ(pmovsset_el0) == 2, "PMU: no interrupt of a counter that has none", 0);
    increment(1, 1);
    check(is_pending(PPI) && READ(isr_el1) == 1 << 7, "PMU: an interrupt pends", READ(isr_el1));
    WRITE(pmintenclr_el1, 1);
    check(!is_pending(PPI), "PMU: it is a level, which falls with its enable bit", 0);
    WRITE(pmintenset_el1, 1);
    check(is_pending(PPI), "PMU: and rises", 0);
    WRITE(pmovsclr_el0, 1);
    check(!is_pending(PPI), "PMU: and falls with its overflow", 0);
    WRITE(pmovsset_el0, 1);
    check(is_pending(PPI), "PMU: which software can set", 0);
    unmask();
    check(takes(1) && me->interrupts[0] == PPI, "PMU: the interrupt comes", me->interrupts[0]);
    WRITE(pmcr_el0, 0);
    set_counter(0, SW_INCR, LAST - TIMES);
    WRITE(pmcr_el0, E);
    increment(1, TIMES);
    check(takes_none(), "PMU: none before the last increment", me->taken);
    increment(1, 1);
    check(takes(2), "PMU: one with it", me->taken);
    mask();
    enable(PPI, false);
}

/* ---- from EL0 */

#define CODE(name, ...)                                                                                 \
    __asm__(".pushsection .text\n\t.balign 8\n" #name ":\n\t" __VA_ARGS__ "\n\tsvc #0\n\t.popsection"); \
    extern const char name[]
CODE(increments_here, "msr pmswinc_el0, x0");
CODE(reads_a_counter, "mrs x1, pmevcntr0_el0");
CODE(reads_the_cycles, "mrs x1, pmccntr_el0");
CODE(enables, "msr pmcntenset_el0, x0");
CODE(spends, "nop\n\tnop\n\tnop");
enum { EL0 = 0x3c0, FROM_EL0 = 8, SVC = 0x15, TRAP = 0x18 };
enum { EN = 1, SW = 2, CR = 4, ER = 8 }; /* PMUSERENR_EL0 */

static unsigned class_of(const char* code) {
    uint64_t vector = try((uint64_t)code + OF_EL0, EL0, 1);
    return vector == FROM_EL0 ? READ(esr_el1) >> 26 : 0;
}

static void users(void) {
    static const struct {
        const char *what, *code;
        unsigned by; /* besides EN */
    } access[] = {{"PMUSERENR_EL0: PMSWINC_EL0", increments_here, SW},
                  {"PMUSERENR_EL0: PMEVCNTR0_EL0", reads_a_counter, ER},
                  {"PMUSERENR_EL0: PMCCNTR_EL0", reads_the_cycles, CR},
                  {"PMUSERENR_EL0: PMCNTENSET_EL0", enables, 0}};
    reset();
    for (unsigned each = 0; each < sizeof access / sizeof *access; each++) {
        bool as_told = true;
        for (unsigned setting = 0; setting < 16; setting++) {
            WRITE(pmuserenr_el0, setting);
            as_told &= class_of(access[each].code) == (setting & (access[each].by | EN) ? SVC : TRAP);
        }
        check(as_told, access[each].what, 0);
    }
    WRITE(pmuserenr_el0, EN);
    reset();
    set_counter(0, SW_INCR | NOT_EL0, 0);
    set_counter(1, SW_INCR | NOT_EL1, 0);
    WRITE(pmcntenset_el0, 3);
    WRITE(pmcr_el0, E);
    try((uint64_t)increments_here + OF_EL0, EL0, 3);
    expect(counter(0), 0, "filters: U is not for EL0");
    expect(counter(1), 1, "filters: P is not for EL1 alone");
    WRITE(pmcr_el0, 0);
    WRITE(pmuserenr_el0, 0);
    set_counter(0, INST_RETIRED | NOT_EL1, 0);
    WRITE(pmcntenset_el0, 1);
    WRITE(pmcr_el0, E);
    try((uint64_t)spends + OF_EL0, EL0, 0);
    WRITE(pmcr_el0, 0);
    expect_of(INST_RETIRED, counter(0), 4, "filters: EL0's three instructions and its SVC");
}

/* ---- several CPUs */

static volatile bool counted_own[MOST_CPUS];

static void count_own(void) {
    unsigned number = number_of_this_cpu();
    reset();
    set_counter(0, SW_INCR, 0);
    set_counter(1, CPU_CYCLES, 0);
    WRITE(pmcntenset_el0, 3);
    WRITE(pmcr_el0, E);
    increment(1, TIMES + number);
    WRITE(pmcr_el0, 0);
    counted_own[number] = counter(0) == TIMES + number && counter(1) > 0;
}

static void several(void) {
    check(others_do(count_own), "PMU: other CPUs come to an end", 0);
    count_own();
    bool all = true;
    for (unsigned cpu = 0; cpu < board.cpus; cpu++) all &= counted_own[cpu];
    check(all, "PMU: each CPU counts its own", board.cpus);
}

void check_pmu(void) {
    cycles();
    configuration();
    increments();
    counts();
    chains();
    interrupts();
    users();
    several();
    reset();
}
