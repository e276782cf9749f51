// Code that is written while it is in use: through another address of the same page, with DC CVAU, DSB, IC IVAU, DSB, ISB as
// the architecture asks; what executes, and counts, is the new code. And DC ZVA. The exit status is what is wrong.
        .include "virt.aarch64.inc"
        .set    TABLES, 0x40100000
        .set    ROUNDS, 50

        .text
        .globl  _start
_start: use_vectors                     // 3
        movz    x21, #TABLES >> 16, lsl #16 // 1
        ldr     x0, =0x0060000000000401 // 1  load    devices: a block, never executed
        str     x0, [x21]               // 1  store
        ldr     x0, =0x40000701         // 1  load    RAM: a block
        str     x0, [x21, #8]           // 1  store
        ldr     x0, =0x0060000040000701 // 1  load    ... and in the next GiB again: never executed there
        str     x0, [x21, #16]          // 1  store
        msr     ttbr0_el1, x21          // 1
        ldr     x0, =25 + (1 << 23)     // 1  load    T0SZ: 39 bits; EPD1
        msr     tcr_el1, x0             // 1
        isb                             // 1
        mrs     x0, sctlr_el1           // 1
        orr     x0, x0, #1              // 1  M
        msr     sctlr_el1, x0           // 1
        isb                             // 1

// ADD x19, x19, #n at `patched`, for n from 50 to 1: 50 * 51 / 2 in all. Every second time it is written where it is, else
// in the alias.
        adr     x2, patched             // 1
        mov     x3, #0x40000000         // 1
        add     x3, x3, x2              // 1  the alias
        ldr     w4, template            // 1  load
        mov     x19, #0                 // 1
        mov     w5, #ROUNDS             // 1
round:  add     w6, w4, w5, lsl #10     // 50  the immediate is in bits 21:10
        tst     w5, #1                  // 50
        csel    x7, x2, x3, eq          // 50
        str     w6, [x7]                // 50  store
        dc      cvau, x7                // 50
        dsb     ish                     // 50
        ic      ivau, x2                // 50
        dsb     ish                     // 50
        isb                             // 50
        bl      patched                 // 50
        subs    w5, w5, #1              // 50
        b.ne    round                   // 50, of which 49 taken

// A function that grows: three times one NOP more before its RET, all of it written in the alias.
        mov     w5, #3                  // 1
        adr     x2, grown               // 1
        mov     x3, #0x40000000         // 1
        add     x3, x3, x2              // 1
        ldr     w6, a_nop               // 1  load
        ldr     w7, a_ret               // 1  load
1:      str     w6, [x3], #4            // 3  store
        str     w7, [x3]                // 3  store
        sub     x0, x3, #4              // 3
        dc      cvau, x0                // 3
        dc      cvau, x3                // 3
        dsb     ish                     // 3
        ic      iallu                   // 3
        dsb     ish                     // 3
        isb                             // 3
        blr     x2                      // 3
        subs    w5, w5, #1              // 3
        b.ne    1b                      // 3, of which 2 taken

// DC ZVA clears 64 bytes; of the quadwords around them two are left.
        movz    x8, #0x4018, lsl #16    // 1
        mov     x9, #-1                 // 1
        mov     w5, #10                 // 1
2:      str     x9, [x8], #8            // 10  store
        subs    w5, w5, #1              // 10
        b.ne    2b                      // 10, of which 9 taken
        sub     x8, x8, #80 - 8         // 1  within the first 64
        dc      zva, x8                 // 1  store
        ldr     x9, [x8, #-8]           // 1  load  0
        ldr     x10, [x8, #48]          // 1  load  0
        ldr     x11, [x8, #56]          // 1  load  -1
        orr     x9, x9, x10             // 1
        add     x11, x11, #1            // 1
        orr     x9, x9, x11             // 1  0
        sub     x19, x19, #ROUNDS * (ROUNDS + 1) / 2 // 1
        add     x19, x19, x9            // 1
        adr     x1, text                // 1
        bl      print                   // 1, and of its own 4 * 9 + 4: "new code\n"
        mov     x1, x19                 // 1
        b       end_with                // 1, and of its own 4

patched:
        add     x19, x19, #0            // 50, never as it stands here
        ret                             // 50
template:
        add     x19, x19, #0
a_nop:  nop
a_ret:  ret
grown:  .skip   16                      // NOP once, twice, three times: 6; RET 3
text:   .asciz  "new code\n"
        .ltorg
        functions
        vectors bad, bad, bad, bad
