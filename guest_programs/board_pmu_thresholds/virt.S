// Thresholds: the cycles in which an event happens so often, or as often as it does in them. Of CPU_CYCLES, which
// happens once in each, and of INST_RETIRED, all of whose instructions are in a cycle with at least one. The exit status
// is the number of values that are not as they should be. It is straight code: each line once.
        .include "virt.aarch64.inc"
        .set    INST_RETIRED, 0x08
        .set    CPU_CYCLES, 0x11
        .set    E, 1
        .set    P, 1 << 1
        .set    NOTHING, 0
        .set    EQUAL, 2                // PMEVTYPER<n>_EL0.TC: as many as there are
        .set    AT_LEAST, 4
        .set    ONE_NOT_EQUAL, 1        // and one
        .set    ONE_AT_LEAST, 5
        .set    ONE_LESS, 7

        .macro  control bits            // 2
        mov     x0, #\bits
        msr     pmcr_el0, x0
        .endm
        .macro  select number, event, condition=0, threshold=0 // 2, a load
        ldr     x0, =(\condition << 61 | \threshold << 32 | \event)
        msr     pmevtyper\number\()_el0, x0
        .endm
        .macro  same register           // 3  as x4
        mrs     x2, \register
        cmp     x2, x4
        cinc    x19, x19, ne
        .endm
        .macro  expect register, value  // 3
        mrs     x2, \register
        cmp     x2, #\value
        cinc    x19, x19, ne
        .endm

        .text
        .globl  _start
_start: mov     x19, #0
        mrs     x3, s3_0_c9_c14_6       // PMMIR_EL1
        ubfx    x3, x3, #20, #4         // THWIDTH
        cmp     x3, #12
        cinc    x19, x19, ne
        mov     x0, #0b111111
        msr     pmcntenset_el0, x0

        select  0, CPU_CYCLES
        select  1, CPU_CYCLES, ONE_AT_LEAST, 1
        select  2, CPU_CYCLES, EQUAL, 1
        select  3, CPU_CYCLES, ONE_LESS, 2
        select  4, CPU_CYCLES, ONE_AT_LEAST, 2
        select  5, CPU_CYCLES, ONE_NOT_EQUAL, 1
        control E|P
        .rept   60                      // which no core retires in one cycle
        nop
        .endr
        control NOTHING
        mrs     x4, pmevcntr0_el0
        cmp     x4, #0
        cinc    x19, x19, eq
        same    pmevcntr1_el0
        same    pmevcntr2_el0
        same    pmevcntr3_el0
        expect  pmevcntr4_el0, 0
        expect  pmevcntr5_el0, 0

// What is behind the MSR that starts counts, and so does the one that stops: 4.
        select  0, INST_RETIRED
        select  1, INST_RETIRED, AT_LEAST, 1
        control E|P
        nop
        nop
        control NOTHING
        expect  pmevcntr0_el0, 4
        expect  pmevcntr1_el0, 4

        adr     x1, text
        bl      print                   // and of its own 4 * 11 + 4
        mov     x1, x19
        b       end_with                // and of its own 4
text:   .asciz  "thresholds\n"
        .ltorg
        functions
