// Software's own increments, where nothing else counts: what is disabled counts none, 2^32 overflows, and the interrupt
// is taken, masked, pending and cleared in every order. The exit status is the number of values that are not as they
// should be. It is straight code: each line retires once, those of the interrupt four times.
        .include "virt.aarch64.inc"
        .set    PMU, 23
        .set    IRQ_PENDING, 1 << 7     // ISR_EL1.I
        .set    E, 1

        .macro  set register, value     // 2
        mov     x0, #\value
        msr     \register, x0
        .endm
        .macro  expect register, value  // 4
        mov     x1, #\value
        mrs     x2, \register
        cmp     x1, x2
        cinc    x19, x19, ne
        .endm
        .macro  interrupts number       // 3  that have come so far
        cmp     x23, #\number
        cinc    x19, x19, ne
        nop
        .endm

        .text
        .globl  _start
_start: use_vectors                     // 3
        gic_on                          // 8
        private_on (1 << PMU)           // 5
        mov     x19, #0
        mov     x23, #0
        set     pmcr_el0, 0b110         // P and C
        set     pmcntenclr_el0, 0xffffffff
        set     pmintenclr_el1, 0xffffffff
        set     pmovsclr_el0, 0xffffffff

// Introspection: SW_INCR and CPU_CYCLES are events 0 and 17.
        mrs     x3, pmceid0_el0
        mov     x4, #0x0001
        movk    x4, #0x0002, lsl #16
        and     x5, x3, x4
        cmp     x5, x4
        cinc    x19, x19, ne
        mrs     x3, pmcr_el0
        ubfx    x3, x3, #11, #5         // N
        cmp     x3, #6
        cinc    x19, x19, ne

// Counters 0 and 1 count SW_INCR, counter 2 an event that nobody has. None is enabled, then two while PMCR_EL0.E is 0,
// then that, too.
        set     pmevtyper0_el0, 0
        set     pmevtyper1_el0, 0
        set     pmevtyper2_el0, 0x1f
        set     pmswinc_el0, 0b111
        set     pmcntenset_el0, 0b101
        set     pmswinc_el0, 0b111
        expect  pmevcntr0_el0, 0
        set     pmcr_el0, E
        set     pmswinc_el0, 0b111
        set     pmswinc_el0, 0b001
        set     pmswinc_el0, 0b110
        expect  pmevcntr0_el0, 2
        expect  pmevcntr1_el0, 0
        expect  pmevcntr2_el0, 0

// P: not at EL1, where we are.
        set     pmevtyper0_el0, 0x80000000
        set     pmswinc_el0, 1
        expect  pmevcntr0_el0, 2
        set     pmevtyper0_el0, 0

// It overflows at 2^32: a flag, and nobody interrupts.
        set     pmevcntr0_el0, 0xffffffff
        set     pmswinc_el0, 1
        expect  pmevcntr0_el0, 0
        expect  pmovsclr_el0, 1
        expect  isr_el1, 0

// The flag is there: with its enable it is pending while interrupts are masked.
        set     pmintenset_el1, 1
        expect  isr_el1, IRQ_PENDING
        set     pmintenclr_el1, 1
        expect  isr_el1, 0
        set     pmintenset_el1, 1
        set     pmovsclr_el0, 0b110     // others' flags
        expect  isr_el1, IRQ_PENDING
        set     pmovsclr_el0, 1         // cleared before anybody took it
        expect  isr_el1, 0
        msr     daifclr, #2
        interrupts 0

// Not masked: it comes when the counter wraps, when software sets the flag, and when the enable comes behind the flag.
        set     pmevcntr0_el0, 0xffffffff
        set     pmswinc_el0, 1
        interrupts 1
        set     pmovsset_el0, 1
        interrupts 2
        set     pmovsset_el0, 2
        interrupts 2
        set     pmintenset_el1, 2
        interrupts 3
        msr     daifset, #2
        set     pmovsset_el0, 3
        msr     daifclr, #2             // one for both
        interrupts 4
        expect  pmovsset_el0, 0

        adr     x1, text
        bl      print                   // and of its own 4 * 13 + 4
        mov     x1, x19
        b       end_with                // and of its own 4

interrupt:
        mrs     x4, s3_0_c12_c12_0      // ICC_IAR1_EL1
        cmp     x4, #PMU
        cinc    x19, x19, ne
        add     x23, x23, #1
        mov     x6, #0b11
        msr     pmovsclr_el0, x6
        msr     s3_0_c12_c12_1, x4      // ICC_EOIR1_EL1
        isb
        eret

text:   .asciz  "4 interrupts\n"
        .ltorg
        functions
        vectors bad, interrupt, bad, bad
