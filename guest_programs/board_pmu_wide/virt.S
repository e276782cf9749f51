// Counters of 64 bits: overflow at bit 31 and at bit 63, CHAIN, freezing, PMICNTR_EL0, PMZR_EL0, and the interrupt of
// them. The exit status is the number of values that are not as they should be. It is straight code: each line once.
        .include "virt.aarch64.inc"
        .set    INST_RETIRED, 8
        .set    CHAIN, 0x1e
        .set    E, 1
        .set    P, 1 << 1
        .set    C, 1 << 2
        .set    DP, 1 << 5
        .set    LP, 1 << 7
        .set    FZO, 1 << 9
        .set    NOTHING, 0
        .set    PMU, 23
        .set    IRQ_PENDING, 1 << 7     // ISR_EL1.I

        .macro  control bits            // 2
        mov     x0, #\bits
        msr     pmcr_el0, x0
        .endm
        .macro  set register, value     // 2, a load
        ldr     x0, =\value
        msr     \register, x0
        .endm
        .macro  expect register, value  // 4, a load
        ldr     x1, =\value
        mrs     x2, \register
        cmp     x1, x2
        cinc    x19, x19, ne
        .endm

        .text
        .globl  _start
_start: mov     x19, #0
        set     pmevtyper0_el0, INST_RETIRED
        set     pmevtyper1_el0, CHAIN
        set     pmevtyper2_el0, INST_RETIRED
        set     pmcntenset_el0, 0b111
        mrs     x3, id_aa64dfr0_el1
        ubfx    x3, x3, #8, #4          // PMUVer
        cmp     x3, #9                  // PMUv3p9
        cinc    x19, x19, ne

// What is behind the MSR that starts counts, and so does the one that stops: 3.
        set     pmevcntr0_el0, 0x7fffffffe
        set     pmevcntr1_el0, 0xffffffff
        set     pmevcntr2_el0, 0xfffffffffffffffe
        control E
        nop
        control NOTHING
        expect  pmevcntr0_el0, 0x800000001
        expect  pmevcntr1_el0, 0x100000000
        expect  pmevcntr2_el0, 1
        expect  pmovsclr_el0, 0b111

// The same with LP: only the third overflows, and nothing is chained.
        set     pmovsclr_el0, 0b111
        set     pmevcntr0_el0, 0x7fffffffe
        set     pmevcntr1_el0, 0xffffffff
        set     pmevcntr2_el0, 0xfffffffffffffffe
        control E|LP
        nop
        control LP
        expect  pmevcntr0_el0, 0x800000001
        expect  pmevcntr1_el0, 0xffffffff
        expect  pmevcntr2_el0, 1
        expect  pmovsclr_el0, 0b100

// A counter that runs is promoted: CHAIN comes behind it while it counts. 8 count until it wraps, and 3 more.
        set     pmovsclr_el0, 0b111
        set     pmcntenclr_el0, 0b111
        set     pmcntenset_el0, 0b001
        set     pmevcntr0_el0, 0xfffffff8
        set     pmevcntr1_el0, 0
        mov     x4, #0b010
        control E
        msr     pmcntenset_el0, x4
        nop
        nop
        nop
        nop
        nop
        nop
        nop                             // the 8th: to zero
        nop
        control NOTHING
        expect  pmevcntr0_el0, 0x100000003
        expect  pmevcntr1_el0, 1
        expect  pmovsset_el0, 0b001

// An overflow freezes: of ten that count the second wraps, and with DP cycles, too, stop there.
        set     pmovsclr_el0, 0b111
        set     pmcntenclr_el0, 0b111
        set     pmcntenset_el0, 0x80000005
        set     pmevcntr0_el0, 0xfffffffe
        set     pmevcntr2_el0, 0
        control C|FZO|DP
        control E|FZO|DP
        nop
        nop                             // wraps
        nop
        nop
        control FZO|DP
        expect  pmevcntr0_el0, 0x100000000
        expect  pmevcntr2_el0, 2
        expect  pmovsset_el0, 0b001
        set     pmovsclr_el0, 0b001     // and they go on
        control E|FZO
        nop
        control NOTHING
        expect  pmevcntr0_el0, 0x100000003
        expect  pmevcntr2_el0, 5

// The instruction counter: bit 32, 64 bits whatever LP is, at its own filter.
        set     pmovsclr_el0, 0x1ffffffff
        set     pmcntenclr_el0, 0x1ffffffff
        expect  s3_3_c9_c6_0, INST_RETIRED // PMICFILTR_EL0
        set     s3_3_c9_c4_0, 0xffffffffffffffff // PMICNTR_EL0
        set     pmcntenset_el0, 0x100000000
        control E|P|C
        nop
        nop
        control NOTHING
        expect  s3_3_c9_c4_0, 3
        expect  pmovsset_el0, 0x100000000
        expect  pmcntenclr_el0, 0x100000000
        set     s3_3_c9_c6_0, 0x80000000 // P: not at EL1
        control E
        nop
        control NOTHING
        expect  s3_3_c9_c4_0, 3

// Zero by a mask: the first and the instruction counter.
        set     pmevcntr0_el0, 5
        set     pmevcntr2_el0, 6
        set     s3_3_c9_c13_4, 0x100000001 // PMZR_EL0
        expect  pmevcntr0_el0, 0
        expect  pmevcntr2_el0, 6
        expect  s3_3_c9_c4_0, 0

// The interrupt, masked, is pending while PMCR_EL0.E is.
        gic_on                          // 8, 1 store
        private_on (1 << PMU)           // 5, 2 stores
        set     pmintenset_el1, 0x100000000
        set     pmovsset_el0, 0x100000000
        expect  isr_el1, 0
        control E
        expect  isr_el1, IRQ_PENDING
        control NOTHING
        expect  isr_el1, 0

        adr     x1, text
        bl      print                   // and of its own 4 * 8 + 4
        mov     x1, x19
        b       end_with                // and of its own 4
text:   .asciz  "64 bits\n"
        .ltorg
        functions
