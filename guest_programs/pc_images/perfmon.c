/* Architectural performance monitoring, versions 2 to 6. Intel SDM volume 3, "Performance Monitoring". */
#include "bare.h"

enum {
    SELECT = 0x186,
    COUNTER = 0xc1,
    WIDE_COUNTER = 0x4c1,
    DEBUG_CONTROL = 0x1d9,
    FIXED = 0x309,
    METRICS = 0x329,
    CAPABILITIES = 0x345,
    FIXED_CONTROL = 0x38d,
    STATUS = 0x38e,
    CONTROL = 0x38f,
    RESET = 0x390,
    SET = 0x391,
    IN_USE = 0x392,
    LVT = 0x340,
};
enum {
    USERS = 1 << 16,
    KERNEL = 1 << 17,
    EDGE = 1 << 18,
    INTERRUPTS = 1 << 20,
    ANY = 1 << 21,
    ENABLE = 1 << 22,
    INVERT = 1 << 23,
    CMASK = 1 << 24
};
enum { CYCLES = 0x3c, INSTRUCTIONS = 0xc0, BRANCHES = 0xc4 };
enum { NMI = 2, VECTOR = 0x51, OTHER = 0x40, MASKED = 1 << 16, BY_NMI = 4 << 8 };
enum { FREEZE = 1 << 12, COUNTED_FOR_USERS = 1 << 8 };
#define FIXED_BIT (1ull << 32)
#define FROZEN (1ull << 59)
#define BRANCHES_FROZEN (1ull << 58)
#define BUFFER_OVERFLOWED (1ull << 62)
#define TRACE_REGION_FULL (1ull << 55)
#define ADAPTIVE (1ull << 34) /* of a select register */
#define METRICS_BIT (1ull << 48)
#define WIDTH_MASK ((1ull << 48) - 1)
#define BOTH (USERS | KERNEL | ENABLE)

static unsigned version, counters, fixed;
static bool has_metrics, has_branches, has_records, has_adaptive_records; /* as IA32_PERF_CAPABILITIES says */
static bool has_trace;                                                    /* as CPUID 7 says */

static uint64_t read_msr(uint32_t number) {
    uint32_t low, high;
    __asm__ volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(number));
    return (uint64_t)high << 32 | low;
}

static void write_msr(uint32_t number, uint64_t value) {
    __asm__ volatile("wrmsr" : : "c"(number), "a"((uint32_t)value), "d"((uint32_t)(value >> 32)) : "memory");
}

static uint64_t read_counter(uint32_t number) {
    uint32_t low, high;
    __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(number));
    return (uint64_t)high << 32 | low;
}

/* What is between the two writes of IA32_PERF_GLOBAL_CTRL, with the second: it counts as it did before */
#define LOOPS 100
enum { IN_A_ROW = 1 + 2 * LOOPS + 3 + 1 };
static void run(uint64_t enabled) {
    __asm__ volatile(
        "wrmsr\n\t"
        "mov %3, %%ecx\n"   /* 1 */
        "1: dec %%ecx\n\t"  /* 100 */
        "jnz 1b\n\t"        /* 100, of which 99 are taken */
        "mov %4, %%ecx\n\t" /* 3 with the next */
        "xor %%eax, %%eax\n\t"
        "xor %%edx, %%edx\n\t"
        "wrmsr" /* 1 */
        : "+a"((uint32_t){(uint32_t)enabled}), "+d"((uint32_t){(uint32_t)(enabled >> 32)}), "+c"((uint32_t){CONTROL})
        : "i"(LOOPS), "i"(CONTROL)
        : "cc", "memory");
}

static void stop(void) {
    write_msr(CONTROL, 0);
    for (unsigned n = 0; n < counters; n++) write_msr(SELECT + n, 0), write_msr(COUNTER + n, 0);
    write_msr(FIXED_CONTROL, 0);
    for (unsigned n = 0; n < fixed; n++) write_msr(FIXED + n, 0);
    write_msr(DEBUG_CONTROL, 0);
    uint64_t status = read_msr(STATUS);
    write_msr(RESET, status);
    forget(VECTOR);
}

/* ---- what a counter counts */

static void select(unsigned number, uint32_t value) {
    write_msr(SELECT + number, value);
    write_msr(COUNTER + number, 0);
}

static uint64_t counts(uint32_t value) {
    select(0, value);
    run(1);
    uint64_t counted = read_msr(COUNTER);
    stop();
    return counted;
}

static void selects(void) {
    expect(counts(INSTRUCTIONS | BOTH), IN_A_ROW, "instructions");
    expect(counts(BRANCHES | BOTH), LOOPS, "branches");
    expect(counts(INSTRUCTIONS | KERNEL | ENABLE), IN_A_ROW, "OS alone");
    expect(counts(INSTRUCTIONS | USERS | ENABLE), 0, "USR alone");
    expect(counts(INSTRUCTIONS | USERS | KERNEL), 0, "without EN");
    expect(counts(INSTRUCTIONS | BOTH | INVERT), IN_A_ROW, "INV is ignored without CMASK");
    expect(counts(CYCLES | BOTH | 2u * CMASK), 0, "no cycle has two cycles");
    expect(counts(CYCLES | BOTH | CMASK | INVERT), 0, "no cycle is without one");
    select(0, CYCLES | BOTH);
    select(1, CYCLES | BOTH | CMASK);
    select(2, CYCLES | BOTH | 255u * CMASK | INVERT);
    run(7);
    uint64_t cycles = read_msr(COUNTER);
    check(cycles > 0, "cycles", cycles);
    expect(read_msr(COUNTER + 1), cycles, "cycles with one, at least");
    expect(read_msr(COUNTER + 2), cycles, "cycles with fewer than 255");
    stop();
    for (unsigned n = 0; n < counters; n++) select(n, INSTRUCTIONS | BOTH);
    run(5);
    for (unsigned n = 0; n < counters; n++)
        expect(read_msr(COUNTER + n), n == 0 || n == 2 ? IN_A_ROW : 0, "the global enable of each");
    expect(read_msr(IN_USE), (1u << counters) - 1, "in use");
    stop();
    expect(read_msr(IN_USE), 0, "none in use");
}

static void widths(void) {
    write_msr(COUNTER, 0x80000000u);
    expect(read_msr(COUNTER), 0xffff80000000, "32 bits are written, and the sign is extended");
    write_msr(COUNTER, 0x123400000001);
    expect(read_msr(COUNTER), 1, "the upper half is not written");
    write_msr(WIDE_COUNTER, 0x123400000001);
    expect(read_msr(COUNTER), 0x123400000001, "IA32_A_PMC0 is written in full");
    expect(read_counter(0), 0x123400000001, "RDPMC reads it");
    write_msr(WIDE_COUNTER, WIDTH_MASK);
    write_msr(SELECT, INSTRUCTIONS | BOTH);
    run(1);
    expect(read_msr(COUNTER), IN_A_ROW - 1, "48 bits wrap");
    expect(read_msr(STATUS), 1, "and that is in the status, without INT");
    write_msr(RESET, 1);
    expect(read_msr(STATUS), 0, "until it is reset");
    stop();
}

static void fixed_counters(void) {
    write_msr(FIXED_CONTROL, 0x333);
    select(0, CYCLES | BOTH);
    run(7 * FIXED_BIT | 1);
    expect(read_msr(FIXED), IN_A_ROW, "fixed counter 0: instructions");
    expect(read_msr(FIXED + 1), read_msr(COUNTER), "fixed counter 1: cycles");
    check(read_msr(FIXED + 2) > 0, "fixed counter 2: the time stamp counter's cycles", read_msr(FIXED + 2));
    expect(read_counter(1u << 30), IN_A_ROW, "RDPMC reads a fixed counter");
    expect(read_counter(1u << 30 | 1), read_msr(FIXED + 1), "RDPMC reads another");
    stop();
    write_msr(FIXED_CONTROL, 0x2);
    run(FIXED_BIT);
    expect(read_msr(FIXED), 0, "fixed counter 0 for users alone");
    write_msr(FIXED_CONTROL, 0x1);
    run(2 * FIXED_BIT);
    expect(read_msr(FIXED), 0, "fixed counter 0 without its global enable");
    write_msr(FIXED, WIDTH_MASK);
    run(FIXED_BIT);
    expect(read_msr(STATUS), FIXED_BIT, "fixed counter 0 wraps into bit 32 of the status");
    stop();
}

/* ---- slots */

static void slots(void) {
    if (!has_metrics) return;
    write_msr(METRICS, 0);
    write_msr(FIXED_CONTROL, 0x3030);
    run(10 * FIXED_BIT | METRICS_BIT);
    uint64_t all = read_msr(FIXED + 3), shares = read_msr(METRICS), sum = 0;
    for (unsigned field = 0; field < 4; field++) sum += shares >> 8 * field & 255;
    check(all >= read_msr(FIXED + 1), "slots: at least one a cycle", all);
    check(sum >= 253 && sum <= 257, "the four shares are 255, but for rounding", shares);
    expect(read_counter(1u << 29), shares, "RDPMC reads the shares");
    write_msr(FIXED + 3, 0);
    write_msr(METRICS, 0);
    expect(read_msr(METRICS), 0, "no slots, no shares");
    stop();
}

/* ---- the interrupt */

static void interrupts(void) {
    set_apic(LVT, VECTOR);
    select(0, INSTRUCTIONS | BOTH | INTERRUPTS);
    write_msr(WIDE_COUNTER, WIDTH_MASK - 4);
    run(1);
    expect(taken[0][VECTOR], 0, "interrupts are off");
    expect(apic(0x200 + 0x10 * (VECTOR / 32)) >> VECTOR % 32 & 1, 1, "so it waits");
    expect(apic(LVT), MASKED | VECTOR, "the APIC has masked its entry");
    let_interrupts_come(true);
    let_interrupts_come(false);
    expect(taken[0][VECTOR], 1, "and comes when they are on");
    expect(read_msr(STATUS), 1, "the status says of which counter");
    write_msr(RESET, 1);
    expect(read_msr(STATUS), 0, "which is reset");
    write_msr(WIDE_COUNTER, WIDTH_MASK);
    run(1);
    let_interrupts_come(true);
    let_interrupts_come(false);
    expect(taken[0][VECTOR], 1, "none by a masked entry");
    stop();
    set_apic(LVT, VECTOR);
    write_msr(FIXED_CONTROL, 0xb);
    write_msr(FIXED, WIDTH_MASK);
    run(FIXED_BIT);
    let_interrupts_come(true);
    let_interrupts_come(false);
    expect(taken[0][VECTOR], 1, "by a fixed counter");
    expect(read_msr(STATUS), FIXED_BIT, "whose bit it is");
    stop();
}

/* The accumulator is for IA32_PERF_GLOBAL_CTRL */
__asm__(
    ".pushsection .text\n"
    "begins_to_count: mov $0x38f, %ecx\n\txor %edx, %edx\n\twrmsr\n"
    "is_counted: nop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tud2\n\t.popsection");
extern const char begins_to_count[], is_counted[];

static void nmi(void) {
    set_apic(LVT, BY_NMI);
    select(0, INSTRUCTIONS | BOTH | INTERRUPTS);
    write_msr(WIDE_COUNTER, WIDTH_MASK - 2);
    try(begins_to_count, false, 1);
    write_msr(CONTROL, 0);
    __asm__ volatile("int %0" : : "i"(OTHER) : "memory"); /* its IRET lets NMIs come again */
    expect(seen.vector, NMI, "as an NMI");
    expect(seen.ip - (word)is_counted, 3, "behind the third instruction, with which it wraps");
    expect(apic(LVT), MASKED | BY_NMI, "the APIC has masked its entry for NMIs, too");
    stop();
}

static void freezes(void) {
    set_apic(LVT, VECTOR);
    write_msr(DEBUG_CONTROL, FREEZE);
    select(0, INSTRUCTIONS | BOTH | INTERRUPTS);
    write_msr(WIDE_COUNTER, WIDTH_MASK - 2);
    write_msr(FIXED_CONTROL, 3);
    run(FIXED_BIT | 1);
    expect(read_msr(COUNTER), 0, "a freeze: the counter stands at its overflow");
    expect(read_msr(FIXED), 3, "so do others");
    expect(read_msr(STATUS), FROZEN | 1, "and the status says so");
    run(FIXED_BIT | 1);
    expect(read_msr(FIXED), 3, "whatever software enables");
    write_msr(RESET, FROZEN | 1);
    run(FIXED_BIT | 1);
    expect(read_msr(FIXED), 3 + IN_A_ROW, "until the status is reset");
    let_interrupts_come(true);
    let_interrupts_come(false);
    stop();
}

/* ---- what is refused */

uint32_t tried_msr, tried_low, tried_high;
__asm__(
    ".pushsection .text\n"
    "writes_tried: mov tried_msr, %ecx\n\tmov tried_low, %eax\n\tmov tried_high, %edx\n\twrmsr\n\tud2\n"
    "reads_tried: mov tried_msr, %ecx\n\trdmsr\n\tud2\n"
    "counts_tried: mov tried_msr, %ecx\n\trdpmc\n\tud2\n\t.popsection");
extern const char writes_tried[], reads_tried[], counts_tried[];

static word after(const char* code, bool is_user, uint32_t number) {
    tried_msr = number;
    try(code, is_user, 0);
    return seen.vector;
}

static void written_bits(uint32_t number, uint64_t bits, const char* what) {
    uint64_t taken_bits = 0;
    for (unsigned bit = 0; bit < 64; bit++) {
        tried_low = bit < 32 ? 1u << bit : 0;
        tried_high = bit < 32 ? 0 : 1u << (bit - 32);
        if (after(writes_tried, false, number) == UNDEFINED) taken_bits |= 1ull << bit;
    }
    check(taken_bits == bits, what, taken_bits);
}

static void reserved_bits(void) {
    uint64_t all = ((1ull << counters) - 1) | ((1ull << fixed) - 1) << 32 | (has_metrics ? METRICS_BIT : 0);
    uint64_t any = version == 3 || version == 4 ? ANY : 0;
    uint64_t branches = has_branches ? BRANCHES_FROZEN : 0, buffer = has_records ? BUFFER_OVERFLOWED : 0;
    uint64_t trace = has_trace ? TRACE_REGION_FULL : 0;
    any |= has_adaptive_records ? ADAPTIVE : 0;
    written_bits(SELECT, (0xffffffff & ~(uint64_t)ANY) | any, "bits of IA32_PERFEVTSEL0");
    written_bits(WIDE_COUNTER, WIDTH_MASK, "bits of IA32_A_PMC0");
    written_bits(FIXED, WIDTH_MASK, "bits of IA32_FIXED_CTR0");
    uint64_t control = 0;
    for (unsigned n = 0; n < fixed; n++) control |= (any & ANY ? 15ull : 11ull) << 4 * n;
    for (unsigned n = 0; n < fixed; n++) control |= has_adaptive_records ? 1ull << (32 + 4 * n) : 0;
    written_bits(FIXED_CONTROL, control, "bits of IA32_FIXED_CTR_CTRL");
    written_bits(CONTROL, all, "bits of IA32_PERF_GLOBAL_CTRL");
    written_bits(RESET, all | FROZEN | branches | trace | 7ull << 61, "bits of IA32_PERF_GLOBAL_STATUS_RESET");
    written_bits(SET, all | FROZEN | branches | trace | buffer, "bits of IA32_PERF_GLOBAL_STATUS_SET");
    written_bits(STATUS, 0, "IA32_PERF_GLOBAL_STATUS is not written");
    written_bits(IN_USE, 0, "IA32_PERF_GLOBAL_INUSE is not written");
    written_bits(CAPABILITIES, 0, "IA32_PERF_CAPABILITIES is not written");
    written_bits(SELECT + counters, 0, "no select register too many");
    written_bits(FIXED + fixed, 0, "no fixed counter too many");
    stop();
}

static void rings(void) {
    const uint32_t numbers[] = {SELECT, COUNTER, WIDE_COUNTER, FIXED,       FIXED_CONTROL,
                                STATUS, CONTROL, RESET,        CAPABILITIES};
    for (unsigned n = 0; n < sizeof numbers / sizeof *numbers; n++) {
        expect(after(reads_tried, false, numbers[n]), UNDEFINED, "RDMSR in ring 0");
        expect(after(reads_tried, true, numbers[n]), PROTECTION, "RDMSR in ring 3");
        expect(after(writes_tried, true, numbers[n]), PROTECTION, "WRMSR in ring 3");
    }
    word control;
    __asm__ volatile("mov %%cr4, %0" : "=r"(control));
    for (unsigned allowed = 0; allowed < 2; allowed++) {
        __asm__ volatile("mov %0, %%cr4" : : "r"(allowed ? control | COUNTED_FOR_USERS : control) : "memory");
        expect(after(counts_tried, true, 0), allowed ? UNDEFINED : PROTECTION, "RDPMC in ring 3, by CR4.PCE");
        expect(after(counts_tried, true, 1u << 30), allowed ? UNDEFINED : PROTECTION, "RDPMC of a fixed one in ring 3");
        expect(after(counts_tried, false, counters - 1), UNDEFINED, "RDPMC in ring 0");
    }
    const uint32_t absent[] = {counters, 1u << 30 | fixed, 1u << 31, 1u << 28, 1u << 29 | 1};
    for (unsigned n = 0; n < sizeof absent / sizeof *absent; n++)
        expect(after(counts_tried, n & 1, absent[n]), PROTECTION, "RDPMC of what is not there");
    expect(after(counts_tried, false, 1u << 29), has_metrics ? UNDEFINED : PROTECTION, "RDPMC of the shares");
    __asm__ volatile("mov %0, %%cr4" : : "r"(control) : "memory");
}

static void extended_leaf(void) {
    uint32_t eax = 0, ebx, ecx = 0, edx;
    __asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    check(eax >= 0x23, "CPUID 0: leaf 23H is there", eax);
    eax = 7, ecx = 1;
    __asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    check(eax >> 8 & 1, "CPUID 7, subleaf 1: ArchPerfmonExt", eax);
    eax = 0x23, ecx = 0;
    __asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    expect(eax, 0xb, "CPUID 23H: its subleaves");
    eax = 0x23, ecx = 1;
    __asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    expect(eax, (1ull << counters) - 1, "CPUID 23H, subleaf 1: general-purpose counters");
    expect(ebx, (1ull << fixed) - 1, "CPUID 23H, subleaf 1: fixed counters");
}

void check_perfmon(void) {
    uint32_t eax = 0xa, ebx, ecx = 0, edx;
    __asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    version = eax & 255;
    counters = eax >> 8 & 255;
    fixed = edx & 31;
    check(version >= 4 && version <= 6, "CPUID 0AH: the version", version);
    expect(eax >> 16 & 255, 48, "CPUID 0AH: bits of a counter");
    expect(edx >> 5 & 255, 48, "CPUID 0AH: bits of a fixed counter");
    expect(version >= 5 ? ecx : (1u << fixed) - 1, (1u << fixed) - 1, "CPUID 0AH: which fixed counters there are");
    if (version >= 6) extended_leaf();
    eax = 7, ecx = 0;
    __asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    has_trace = ebx >> 25 & 1;
    uint64_t capabilities = read_msr(CAPABILITIES);
    has_metrics = capabilities >> 15 & 1;
    has_branches = capabilities & 63;
    has_records = capabilities >> 8 & 15;
    has_adaptive_records = capabilities >> 14 & 1;
    check(capabilities >> 13 & 1, "counters can be written in full", capabilities);
    expect(read_msr(CONTROL), (1u << counters) - 1, "all counters are enabled at reset");
    expect(read_msr(STATUS) | read_msr(SELECT) | read_msr(FIXED_CONTROL) | read_msr(COUNTER), 0, "all else is zero");
    stop();
    selects();
    widths();
    fixed_counters();
    slots();
    interrupts();
    nmi();
    freezes();
    reserved_bits();
    rings();
}
