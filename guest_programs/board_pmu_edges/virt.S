// Edges and links: FEAT_PMUv3_EDGE, FEAT_PMUv3_TH2. Of stalls, whose cycles are the core's model's to say, what must hold
// between counters is known: on every core it does, and on one without a pipeline all of them are zero. The exit status is
// the number of values that are not as they should be. It is straight code: each line once, but for the loop.
        .include "virt.aarch64.inc"
        .set    INST_RETIRED, 0x08
        .set    CPU_CYCLES, 0x11
        .set    STALL_BACKEND, 0x24
        .set    STALL, 0x3c
        .set    E, 1
        .set    P, 1 << 1
        .set    C, 1 << 2
        .set    NOTHING, 0
        .set    NOT_EQUAL, 0
        .set    ONE_NOT_EQUAL, 1        // PMEVTYPER<n>_EL0.TC: with TE, where the event begins
        .set    AT_LEAST, 4
        .set    LESS, 6
        .set    ELSE, 1                 // TLC
        .set    THEN, 2
        .set    TIMES, 20

        .macro  control bits            // 2
        mov     x0, #\bits
        msr     pmcr_el0, x0
        .endm
        .macro  select number, event, condition=0, threshold=0, edge=0, link=0 // 2, a load
        ldr     x0, =(\condition << 61 | \edge << 60 | \link << 54 | \threshold << 32 | \event)
        msr     pmevtyper\number\()_el0, x0
        .endm
        .macro  same register, other    // 3
        mrs     x2, \register
        cmp     x2, \other
        cinc    x19, x19, ne
        .endm
        .macro  most register, other    // 3  not more than that
        mrs     x2, \register
        cmp     x2, \other
        cinc    x19, x19, hi
        .endm

        .text
        .globl  _start
_start: mov     x19, #0
        mrs     x3, s3_0_c9_c14_6       // PMMIR_EL1
        ubfx    x3, x3, #24, #4         // EDGE
        cmp     x3, #2
        cinc    x19, x19, ne
        mov     w0, #0x8000003f         // cycles, too
        msr     pmcntenset_el0, x0

// TLC is of odd counters, and both fields read as they were written.
        movz    x4, #0x10c0, lsl #48    // TE, TLC
        msr     pmevtyper0_el0, x4
        msr     pmevtyper1_el0, x4
        same    pmevtyper1_el0, x4
        and     x4, x4, #1 << 60
        same    pmevtyper0_el0, x4

// Divisions, each of which waits for the one before: how often dispatch stalls, and no more often than for cycles.
        select  0, STALL_BACKEND
        select  1, STALL_BACKEND, ONE_NOT_EQUAL, edge=1
        select  2, STALL
        select  3, STALL, ONE_NOT_EQUAL, edge=1
        select  4, INST_RETIRED
        select  5, CPU_CYCLES, LESS, link=ELSE  // less than 0 never is: what counter 4 adds
        mov     x3, #-1
        mov     x4, #3
        mov     x5, #TIMES
        control E|P|C
1:      udiv    x3, x3, x4              // TIMES
        udiv    x3, x3, x4              // TIMES
        sub     x5, x5, #1              // TIMES
        cbnz    x5, 1b                  // TIMES, of which one falls through
        control NOTHING
        mrs     x6, pmevcntr0_el0
        most    pmevcntr1_el0, x6
        mrs     x7, pmevcntr1_el0
        mrs     x8, pmevcntr2_el0
        most    pmevcntr3_el0, x8
        mrs     x9, pmevcntr3_el0
        cmp     x9, #0                  // they are none or some together
        cset    x10, eq
        cmp     x8, #0
        cset    x11, eq
        cmp     x10, x11
        cinc    x19, x19, ne
        mov     x12, #4 * TIMES + 2     // what is behind the MSR that starts counts, and so does the one that stops
        same    pmevcntr4_el0, x12
        same    pmevcntr5_el0, x12

// What an odd counter adds by the one below: a cycle in which the back end stalls, if it is a stall; one for a cycle, and
// else for a stall, which is never asked. A counter below that is disabled adds nothing.
        select  0, STALL
        select  1, STALL_BACKEND, NOT_EQUAL, link=THEN
        select  2, STALL
        select  3, CPU_CYCLES, ONE_NOT_EQUAL, link=ELSE
        select  4, INST_RETIRED
        select  5, CPU_CYCLES, AT_LEAST, link=THEN      // at least 0 always is
        mov     x0, #0b010000
        msr     pmcntenclr_el0, x0
        mov     x5, #TIMES
        control E|P|C
1:      udiv    x3, x3, x4              // TIMES
        udiv    x3, x3, x4              // TIMES
        sub     x5, x5, #1              // TIMES
        cbnz    x5, 1b                  // TIMES
        control NOTHING
        mrs     x6, pmevcntr0_el0
        most    pmevcntr1_el0, x6
        mrs     x6, pmccntr_el0
        same    pmevcntr3_el0, x6
        same    pmevcntr5_el0, xzr

        adr     x1, text
        bl      print                   // and of its own 4 * 6 + 4
        mov     x1, x19
        b       end_with                // and of its own 4
text:   .asciz  "edges\n"
        .ltorg
        functions
