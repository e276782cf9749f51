// What EL0 may access of the PMU with each value of PMUSERENR_EL0: a line for each access. Bit n of its mask says that
// the access does not come to its end with the value n; behind it is ESR_EL1 of the last that did not.
        .include "virt.aarch64.inc"
        .set    SETTINGS, 16            // of EN, SW, CR, ER
        .set    SVC, 0x15               // ESR_EL1.EC

        .text
        .globl  _start
_start: use_vectors                     // 3
        adr     x20, accesses           // 1
next:   mov     x19, #0                 // 35  for each access
        mov     x21, #0                 // 35
        mov     x22, #0                 // 35
each:   msr     pmuserenr_el0, x19      // 560  for each setting of each access
        msr     elr_el1, x20            // 560
        msr     spsr_el1, xzr           // 560
        eret                            // 560

lower:  mrs     x0, esr_el1             // 560
        lsr     x1, x0, #26             // 560
        cmp     x1, #SVC                // 560
        cset    x2, ne                  // 560
        csel    x22, x0, x22, ne        // 560
        lsl     x2, x2, x19             // 560
        orr     x21, x21, x2            // 560
        add     x19, x19, #1            // 560
        cmp     x19, #SETTINGS          // 560
        b.ne    each                    // 560, of which 35 * 15 taken
        mov     x1, x21                 // 35
        mov     x2, #4                  // 35
        mov     w7, #' '                // 35
        bl      hex                     // 35, and of its own 2 + 10 * 4 + 1
        mov     x1, x22                 // 35
        mov     x2, #8                  // 35
        mov     w7, #'\n'               // 35
        bl      hex                     // 35, and of its own 2 + 10 * 8 + 1
        add     x20, x20, #8            // 35
        adr     x0, last                // 35
        cmp     x20, x0                 // 35
        b.ne    next                    // 35, of which 34 taken
        mov     x1, #0                  // 1
        b       end_with                // 1, and of its own 4

        hex_function

accesses:
        .irp    register, pmcr_el0, pmcntenset_el0, pmcntenclr_el0, pmovsclr_el0, pmovsset_el0
        try_read \register
        try_write \register
        .endr
        try_write pmswinc_el0
        .irp    register, pmselr_el0, pmccntr_el0, pmccfiltr_el0, pmevcntr0_el0, pmevtyper0_el0, pmevcntr5_el0
        try_read \register
        try_write \register
        .endr
        .irp    register, pmevtyper5_el0, pmxevtyper_el0, pmxevcntr_el0
        try_read \register
        try_write \register
        .endr
        try_read pmceid0_el0
        try_read pmceid1_el0
        try_read pmuserenr_el0
        try_write pmuserenr_el0         // undefined, and not trapped: of EL1 alone
        try_read pmintenset_el1
        try_write pmintenclr_el1
last:
        .ltorg
        functions
        vectors bad, bad, lower, bad
