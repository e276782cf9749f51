// Interrupts of the timers, for which the CPU waits, and of the PMU: right behind the instruction that makes a counter
// overflow. The exit status is the number of interrupts that came elsewhere, or not.
        .include "virt.aarch64.inc"
        .set    VIRTUAL_TIMER, 27
        .set    PHYSICAL_TIMER, 30
        .set    PMU, 23
        .set    TICKS, 5000             // that a wait lasts
        .set    PERIOD, 40              // instructions

        .text
        .globl  _start
_start: use_vectors                     // 3
        gic_on                          // 8
        private_on (1 << VIRTUAL_TIMER | 1 << PHYSICAL_TIMER | 1 << PMU) // 5
        mov     x19, #0                 // 1
        mov     x23, #0                 // 1
        mov     x12, #3                 // 1
        movz    x24, #0x4010, lsl #16   // 1

// Three waits for each timer. With interrupts masked WFI goes on when one is pending, whether that was before or behind.
wait:   mov     x0, #TICKS              // 3
        msr     cntv_tval_el0, x0       // 3
        mov     x0, #1                  // 3
        msr     cntv_ctl_el0, x0        // 3
        mov     x22, #VIRTUAL_TIMER     // 3
        wfi                             // 3
        adr     x21, 1f                 // 3  where the interrupt comes
        msr     daifclr, #2             // 3
1:      msr     daifset, #2             // 3
        mov     x0, #TICKS              // 3
        msr     cntp_tval_el0, x0       // 3
        mov     x0, #1                  // 3
        msr     cntp_ctl_el0, x0        // 3
        mov     x22, #PHYSICAL_TIMER    // 3
        wfi                             // 3
        adr     x21, 1f                 // 3
        msr     daifclr, #2             // 3
1:      msr     daifset, #2             // 3
        subs    x12, x12, #1            // 3
        b.ne    wait                    // 3, of which 2 taken

// Counter 0 counts what retires, from behind the write of PMCR_EL0 on: its last but one value is reached 39 later.
        mov     x0, #8                  // 1  INST_RETIRED
        msr     pmevtyper0_el0, x0      // 1
        mov     x0, #1                  // 1
        msr     pmcntenset_el0, x0      // 1
        msr     pmintenset_el1, x0      // 1
        mov     w1, #-PERIOD            // 1
        msr     pmevcntr0_el0, x1       // 1
        mov     x22, #PMU               // 1
        msr     daifclr, #2             // 1
        adr     x21, there              // 1
        msr     pmcr_el0, x0            // 1
        .rept   PERIOD - 1
        add     x14, x14, #1            // 1 each
        .endr
        str     x14, [x24]              // 1  store   the 40th
there:  mov     x0, #0                  // 1
        msr     pmcr_el0, x0            // 1
        to_user user                    // 5

// Again at EL0, which alone is counted, in a loop: ADD, SUBS, B.NE thirteen times are 39. The 40th is the branch behind.
user:   mov     x13, #13                // 1  not counted yet
        svc     #0                      // 1
2:      add     x14, x14, #1            // 13
        subs    x13, x13, #1            // 13
        b.ne    2b                      // 13, of which 12 taken
        b       behind                  // 1
        nop
behind: svc     #1                      // 1

// From EL0: SVC #0 starts the counter, #1 stops all.
call:   mrs     x0, esr_el1             // 2
        tbnz    x0, #0, stop            // 2, of which 1 taken
        mov     w1, #-PERIOD            // 1
        msr     pmevcntr0_el0, x1       // 1
        movz    x0, #8                  // 1
        movk    x0, #0x8000, lsl #16    // 1  P: not at EL1
        msr     pmevtyper0_el0, x0      // 1
        adr     x21, behind             // 1
        mov     x0, #1                  // 1
        msr     pmcr_el0, x0            // 1
        eret                            // 1

// Of 6 waits, and 2 overflows.
interrupt:
        mrs     x4, s3_0_c12_c12_0      // 8  ICC_IAR1_EL1
        mrs     x5, elr_el1             // 8
        cmp     x5, x21                 // 8
        ccmp    x4, x22, #0, eq         // 8
        cinc    x19, x19, ne            // 8
        add     x23, x23, #1            // 8
        mov     x6, #3                  // 8  masked
        msr     cntv_ctl_el0, x6        // 8
        msr     cntp_ctl_el0, x6        // 8
        mov     x6, #1                  // 8
        msr     pmovsclr_el0, x6        // 8
        msr     s3_0_c12_c12_1, x4      // 8  ICC_EOIR1_EL1
        isb                             // 8
        eret                            // 8

stop:   eor     x23, x23, #8            // 1
        add     x19, x19, x23           // 1
        adr     x1, text                // 1
        bl      print                   // 1, and of its own 4 * 13 + 4: "8 interrupts\n"
        mov     x1, x19                 // 1
        b       end_with                // 1, and of its own 4
text:   .asciz  "8 interrupts\n"
        .ltorg
        functions
        vectors bad, interrupt, call, interrupt
