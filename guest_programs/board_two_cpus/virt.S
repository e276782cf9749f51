// Two CPUs: PSCI turns the second on, and they send each other an interrupt, ten times there and back; each waits for the
// other's by WFI. Then one after the other adds to a word, by exclusives. The exit status is what is wrong with the sums.
        .include "virt.aarch64.inc"
        .set    ROUNDS, 10
        .set    ADDS, 100
        .set    SGI, 5

        .macro  send to
        mov     x0, #SGI << 24          // 1
        orr     x0, x0, #1 << \to       // 1
        dsb     ishst                   // 1
        msr     s3_0_c12_c11_5, x0      // 1  ICC_SGI1R_EL1
        .endm
// Interrupts are masked but for one instruction: WFI goes on when one is pending, whether that was before or behind.
        .macro  await
        wfi                             // 1
        msr     daifclr, #2             // 1
        msr     daifset, #2             // 1
        .endm

        .text
        .globl  _start
_start: use_vectors                     // 3
        gic_on                          // 8
        private_on 1 << SGI             // 5
        movz    x20, #0x4010, lsl #16   // 1  what they share
        str     xzr, [x20]              // 1  store
        mov     x19, #0                 // 1
        movz    w0, #3                  // 1
        movk    w0, #0xc400, lsl #16    // 1  CPU_ON
        mov     x1, #1                  // 1
        adr     x2, second              // 1
        mov     x3, #0x77               // 1
        hvc     #0
        mov     x18, x0                 // 1  SUCCESS
        mov     x12, #ROUNDS            // 1
1:      await                           // 3 * 10
        send    1                       // 4 * 10
        subs    x12, x12, #1            // 10
        b.ne    1b                      // 10, of which 9 taken
        await                           // 3   the other has done with its sums
        bl      adds                    // 1, and of its own 2 + 6 * 100
        sub     x19, x19, #ROUNDS + 1   // 1
        add     x19, x19, x18           // 1
        ldr     x1, [x20]               // 1  load
        sub     x1, x1, #2 * ADDS       // 1
        add     x1, x1, x19             // 1
        mov     x19, x1                 // 1
        ldr     x0, [x20, #8]           // 1  load
        sub     x0, x0, #0x77           // 1
        add     x19, x19, x0            // 1
        adr     x1, text                // 1
        bl      print                   // 1, and of its own 4 * 9 + 4: "two CPUs\n"
        mov     x1, x19                 // 1
        b       end_with                // 1, and of its own 4

// The second CPU, with 0x77 in x0.
second: mov     x26, x0                 // 1
        use_vectors                     // 3
        gic_on                          // 8
        private_on 1 << SGI, 1          // 5
        movz    x20, #0x4010, lsl #16   // 1
        str     x26, [x20, #8]          // 1  store
        mov     x19, #0                 // 1
        mov     x12, #ROUNDS            // 1
2:      send    0                       // 4 * 10
        await                           // 3 * 10
        subs    x12, x12, #1            // 10
        b.ne    2b                      // 10, of which 9 taken
        bl      adds                    // 1, and of its own 2 + 6 * 100
        dsb     ish                     // 1
        send    0                       // 4
        movz    w0, #2                  // 1
        movk    w0, #0x8400, lsl #16    // 1  CPU_OFF
        hvc     #0

// Of both CPUs, though not at once: each STXR succeeds.
adds:   mov     x12, #ADDS              // 1
3:      ldaxr   x0, [x20]               // 100  load
        add     x0, x0, #1              // 100
        stlxr   w1, x0, [x20]           // 100  store
        cbnz    w1, 3b                  // 100, never taken
        subs    x12, x12, #1            // 100
        b.ne    3b                      // 100, of which 99 taken
        ret                             // 1

// An interrupt: 11 of the first CPU, 10 of the second.
take:   mrs     x4, s3_0_c12_c12_0      // 1 each
        add     x19, x19, #1            // 1
        msr     s3_0_c12_c12_1, x4      // 1
        isb                             // 1
        eret                            // 1
text:   .asciz  "two CPUs\n"
        .ltorg
        functions
        vectors bad, take, bad, bad
