// A kernel that has a program at EL0 stepped: MDSCR_EL1.SS, and SPSR_EL1.SS at each return, so that each instruction there
// ends in a software step exception. The exit status is 100 times what is wrong with the last sum, and with the steps.
        .include "virt.aarch64.inc"
        .set    STEPS, 3 + 3 * 5 + 1    // of what EL0 executes, before its last SVC, whose exception comes first

        .text
        .globl  _start
_start: use_vectors                     // 3
        msr     oslar_el1, xzr          // 1  the OS lock is open
        mov     x0, #1                  // 1
        msr     mdscr_el1, x0           // 1  SS
        isb                             // 1
        mov     x19, #0                 // 1
        mov     x20, #0                 // 1
        adr     x0, user                // 1
        msr     elr_el1, x0             // 1
        mov     x0, #1 << 21            // 1  SS: one instruction is executed
        msr     spsr_el1, x0            // 1
        eret                            // 1

user:   mov     x10, #5                 // 1
        movz    x11, #0x4010, lsl #16   // 1
        mov     x13, #0                 // 1
1:      add     x13, x13, x10           // 5
        subs    x10, x10, #1            // 5
        b.ne    1b                      // 5, of which 4 taken
        str     x13, [x11]              // 1  store
        svc     #0                      // 1

// After each step, and the SVC.
take:   mrs     x0, esr_el1             // 20
        lsr     x0, x0, #26             // 20
        cmp     x0, #0x32               // 20  a software step from EL0
        b.ne    other                   // 20, of which 1 taken
        mrs     x1, elr_el1             // 19
        add     x20, x20, #1            // 19
        mrs     x1, spsr_el1            // 19
        orr     x1, x1, #1 << 21        // 19
        msr     spsr_el1, x1            // 19
        eret                            // 19

other:  cmp     x0, #0x15               // 1  SVC
        cinc    x19, x19, ne            // 1
        ldr     x2, [x11]               // 1  load
        cmp     x2, #15                 // 1  5 + 4 + 3 + 2 + 1
        cinc    x19, x19, ne            // 1
        mov     x3, #100                // 1
        sub     x20, x20, #STEPS        // 1
        madd    x19, x19, x3, x20       // 1
        adr     x1, text                // 1
        bl      print                   // 1, and of its own 4 * 9 + 4: "19 steps\n"
        mov     x1, x19                 // 1
        b       end_with                // 1, and of its own 4
text:   .asciz  "19 steps\n"
        .ltorg
        functions
        vectors bad, bad, take, bad
