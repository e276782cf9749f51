/* Exceptions from EL1 and EL0: which vector, and what ESR_EL1, ELR_EL1 and FAR_EL1 say. */
#include "bare.h"

#define OF_EL0 0x40000000ull /* from an address of RAM's to the same at 2 GiB */
#define PIECES 0xc0000000ull /* see start.S */
#define PIECE 0x200000ull
#define NOWHERE (PIECES + 16 * PIECE)
enum { EL0 = 0x3c0, EL1_USER_STACK = 0x3c4, EL1 = 0x3c5, EL0_UNMASKED = 0x340 }; /* PSTATE */
enum { SGI = 1 };

/* Each is one instruction, and then one that is undefined */
#define CODE(name, ...)                                                                                 \
    __asm__(".pushsection .text\n\t.balign 8\n" #name ":\n\t" __VA_ARGS__ "\n\tudf #0\n\t.popsection"); \
    extern const char name[]
CODE(undefined, ".inst 0");
CODE(calls, "svc #0x123");
CODE(breaks, "brk #0x456");
CODE(hypervisor, "hvc #1");
CODE(monitor, "smc #1");
CODE(loads, "ldr x1, [x0]");
CODE(stores, "str x1, [x0]");
CODE(loads_exclusive, "ldxr x1, [x0]");
CODE(jumps, "br x0");
CODE(reads_control, "mrs x1, sctlr_el1");
CODE(masks, "msr daifset, #2");
CODE(reads_masks, "mrs x1, daif");
CODE(zeroes, "dc zva, x0");
CODE(cleans, "dc cvau, x0");
CODE(invalidates, "ic ivau, x0");
CODE(reads_type, "mrs x1, ctr_el0");
CODE(reads_time, "mrs x1, cntvct_el0");
CODE(reads_cycles, "mrs x1, pmccntr_el0");
CODE(reads_nothing, "mrs x1, s3_0_c15_c9_7");
CODE(waits, "wfi");
CODE(returns, "eret");
CODE(goes_round, "b .");

enum { SYNCHRONOUS_USER_STACK = 0, SYNCHRONOUS = 4, FROM_EL0 = 8, INTERRUPT_FROM_EL0 = 9 };
enum { HERE = 0, BEHIND = 4, THERE = -1 }; /* ELR_EL1, from the instruction on, or what it jumps to */

static const struct attempt {
    const char* what;
    const char* code;
    unsigned state, vector;
    uint32_t esr;
    int elr;
    uint64_t argument;
    bool tells_address; /* in FAR_EL1: the argument */
} attempts[] = {
    {"EL1: undefined", undefined, EL1, SYNCHRONOUS, 0x02000000, HERE, 0, false},
    {"EL1: SVC", calls, EL1, SYNCHRONOUS, 0x56000123, BEHIND, 0, false},
    {"EL1: SVC, with SP_EL0", calls, EL1_USER_STACK, SYNCHRONOUS_USER_STACK, 0x56000123, BEHIND, 0, false},
    {"EL1: BRK", breaks, EL1, SYNCHRONOUS, 0xf2000456, HERE, 0, false},
    {"EL1: a register that is none", reads_nothing, EL1, SYNCHRONOUS, 0x02000000, HERE, 0, false},
    {"EL1: a load from nowhere", loads, EL1, SYNCHRONOUS, 0x96000006, HERE, NOWHERE + 0x123, true},
    {"EL1: a store to nowhere", stores, EL1, SYNCHRONOUS, 0x96000046, HERE, NOWHERE + 8, true},
    {"EL1: a load from above all tables", loads, EL1, SYNCHRONOUS, 0x96000004, HERE, 1ull << 40, true},
    {"EL1: a store to what is read only", stores, EL1, SYNCHRONOUS, 0x9600004e, HERE, PIECES + 0x80000, true},
    {"EL1: no access flag", loads, EL1, SYNCHRONOUS, 0x9600000a, HERE, PIECES + PIECE, true},
    {"EL1: exclusive, not aligned", loads_exclusive, EL1, SYNCHRONOUS, 0x96000021, HERE, 0x40080001, true},
    {"EL1: executes nowhere", jumps, EL1, SYNCHRONOUS, 0x86000006, THERE, NOWHERE, true},
    {"EL1: executes what EL0 may write", jumps, EL1, SYNCHRONOUS, 0x8600000d, THERE, 0x80080000, true},
    {"EL0: undefined", undefined, EL0, FROM_EL0, 0x02000000, HERE, 0, false},
    {"EL0: SVC", calls, EL0, FROM_EL0, 0x56000123, BEHIND, 0, false},
    {"EL0: BRK", breaks, EL0, FROM_EL0, 0xf2000456, HERE, 0, false},
    {"EL0: HVC", hypervisor, EL0, FROM_EL0, 0x02000000, HERE, 0, false},
    {"EL0: SMC", monitor, EL0, FROM_EL0, 0x02000000, HERE, 0, false},
    {"EL0: ERET", returns, EL0, FROM_EL0, 0x02000000, HERE, 0, false},
    {"EL0: a register of EL1's", reads_control, EL0, FROM_EL0, 0x02000000, HERE, 0, false},
    {"EL0: a load of EL1's", loads, EL0, FROM_EL0, 0x9200000d, HERE, 0x40080000, true},
    {"EL0: a store to EL1's", stores, EL0, FROM_EL0, 0x9200004d, HERE, 0x40080000, true},
    {"EL0: a store to what is read only", stores, EL0, FROM_EL0, 0x9200004e, HERE, PIECES + 3 * PIECE, true},
    {"EL0: a load from nowhere", loads, EL0, FROM_EL0, 0x92000006, HERE, NOWHERE, true},
    {"EL0: executes what it must not", jumps, EL0, FROM_EL0, 0x8200000e, THERE, PIECES + 2 * PIECE, true},
    {"EL0: executes what is EL1's", jumps, EL0, FROM_EL0, 0x8200000d, THERE, 0x40080000, true},
    {"EL0: executes what is not aligned", jumps, EL0, FROM_EL0, 0x8a000000, THERE, 0x80080002, true},
    {"EL0: MSR DAIFSet", masks, EL0, FROM_EL0, 0x62000000, HERE, 0, false},
    {"EL0: MRS DAIF", reads_masks, EL0, FROM_EL0, 0x62000000, HERE, 0, false},
    {"EL0: DC ZVA", zeroes, EL0, FROM_EL0, 0x62000000, HERE, 0x80081000, false},
    {"EL0: DC CVAU", cleans, EL0, FROM_EL0, 0x62000000, HERE, 0x80081000, false},
    {"EL0: IC IVAU", invalidates, EL0, FROM_EL0, 0x62000000, HERE, 0x80081000, false},
    {"EL0: MRS CTR_EL0", reads_type, EL0, FROM_EL0, 0x62000000, HERE, 0, false},
    {"EL0: MRS CNTVCT_EL0", reads_time, EL0, FROM_EL0, 0x62000000, HERE, 0, false},
    {"EL0: MRS PMCCNTR_EL0", reads_cycles, EL0, FROM_EL0, 0x62000000, HERE, 0, false},
    {"EL0: WFI", waits, EL0, FROM_EL0, 0x07e00000, HERE, 0, false},
};
enum { TRAPPED_REGISTER = 0x62000000 };

static void attempt(const struct attempt* it) {
    uint64_t code = (uint64_t)it->code + (it->state == EL0 ? OF_EL0 : 0);
    uint64_t vector = try(code, it->state, it->argument);
    uint64_t esr = READ(esr_el1), elr = READ(elr_el1), far = READ(far_el1);
    uint64_t wanted = it->elr == THERE ? it->argument : code + it->elr;
    if (it->esr == TRAPPED_REGISTER) /* the rest says which: an instruction of these, bits 20 to 5 of it */
        esr &= ~0x01ffffffull;
    bool is_right = vector == it->vector && esr == it->esr && elr == wanted;
    if (it->tells_address) is_right &= far == it->argument;
    check(is_right, it->what, vector << 32 | (uint32_t)esr);
    if (is_right) return;
    say("  ELR_EL1, FAR_EL1: ");
    say_number(elr);
    say(" ");
    say_number(far);
    say("\n");
}

void check_exceptions(void) {
    WRITE(cntkctl_el1, 0);
    WRITE(pmuserenr_el0, 0);
    for (unsigned number = 0; number < sizeof attempts / sizeof *attempts; number++) attempt(&attempts[number]);
    enable(SGI, true);
    set_priority(SGI, 0x80);
    send_to_self(SGI);
    uint64_t vector = try((uint64_t)goes_round + OF_EL0, EL0_UNMASKED, 0);
    check(vector == INTERRUPT_FROM_EL0 && READ(elr_el1) == (uint64_t)goes_round + OF_EL0, "EL0: an interrupt", vector);
    unsigned found = (unsigned)READ(s3_0_c12_c12_0);
    WRITE(s3_0_c12_c12_1, found);
    expect(found, SGI, "EL0: which it was");
    enable(SGI, false);
}
