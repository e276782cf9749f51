// Synchronous exceptions from EL1 and from EL0, with the MMU off. Each is noted with its ESR, FAR (of aborts alone) and
// ELR, and what is noted must be as in a table. The exit status is the number of differences.
//
// Before each line or behind it: how often it retires. What raises an exception does not retire, but SVC.
        .include "virt.aarch64.inc"
        .set    NOWHERE_HIGH, 0x0b00    // bits 31:16 of an address where the board has nothing
        .set    NOTED, 15               // exceptions: 8 from EL1 and 7 from EL0, without the SVC that comes back

        .macro  note what:vararg
        adr     x20, 1f                 // 1  where the handler goes on
        \what
1:
        .endm

        .text
        .globl  _start
_start: use_vectors                     // 3
        adr     x10, noted              // 1
        movz    x21, #NOWHERE_HIGH, lsl #16 // 1
        adr     x22, noted + 3          // 1  a misaligned address
        note    svc     #0x1234         // 2  an SVC has retired
        note    brk     #0x77           // 1
        note    udf     #3              // 1
        note    ldr     x0, [x21, #16]  // 1
        note    str     x0, [x21]       // 1
        note    ldxr    w0, [x22]       // 1
        note    mrs     x0, s3_0_c15_c2_3 // 1  a register that is not there
        note    br      x21             // 2  the branch has retired; what it leads to cannot be fetched
        to_user user                    // 5
user:                                   //     at EL0
        note    svc     #0x1234         // 2
        note    brk     #0xffff         // 1
        note    udf     #3              // 1
        note    ldr     x0, [x21, #16]  // 1
        note    ldur    x0, [x22, #-3]  // 2  load, of RAM: no exception
        note    strb    w0, [x21]       // 1
        note    mrs     x0, sctlr_el1   // 1  of EL1
        note    br      x21             // 2
        movz    x20, #0                 // 1  no place to go on
        svc     #1                      // 1  back to EL1: noted as well, and compared

// Behind each exception: 16 of them, at EL1.
take:   mrs     x0, esr_el1             // 16
        mrs     x1, far_el1             // 16
        mrs     x2, elr_el1             // 16
        lsr     x3, x0, #26             // 16
        and     x3, x3, #0x38           // 16
        cmp     x3, #0x20               // 16  aborts are classes 0x20 to 0x25
        csel    x1, x1, xzr, eq         // 16  of others FAR is not said
        adr     x3, _start              // 16
        sub     x2, x2, x3              // 16
        stp     x0, x1, [x10], #16      // 16  store
        str     x2, [x10], #8           // 16  store
        cbz     x20, compare            // 16, of which 1 taken
        msr     elr_el1, x20            // 15
        eret                            // 15

compare:
        adr     x10, noted              // 1
        adr     x11, expected           // 1
        mov     x12, #3 * (NOTED + 1)   // 1
        mov     x1, #0                  // 1
1:      ldr     x2, [x10], #8           // 48  load
        ldr     x3, [x11], #8           // 48  load
        cmp     x2, x3                  // 48
        cinc    x1, x1, ne              // 48
        subs    x12, x12, #1            // 48
        b.ne    1b                      // 48, of which 47 taken
        mov     x19, x1                 // 1
        adr     x1, text                // 1
        bl      print                   // 1, and of its own 4 * 14 + 4: "16 exceptions\n"
        mov     x1, x19                 // 1
        b       end_with                // 1, and of its own 4

text:   .asciz  "16 exceptions\n"
        .balign 8
// ESR (Arm ARM DDI 0487, "ESR_EL1": EC, IL, ISS), FAR, ELR from _start on.
        .set    IL, 1 << 25
        .macro  row class, specific, far, at
        .quad   (\class << 26) | IL | \specific, \far, \at
        .endm
expected:
        row     0x15, 0x1234, 0, 4 * 8          // SVC: ELR is behind it
        row     0x3c, 0x77, 0, 4 * 9            // BRK: on it, as with all others
        row     0, 0, 0, 4 * 11                 // undefined
        row     0x25, 0x10, 0x0b000010, 4 * 13  // data abort from EL1: external
        row     0x25, 0x50, 0x0b000000, 4 * 15  // ... of a write
        row     0x25, 0x21, NOTED_MISALIGNED, 4 * 17 // ... alignment
        row     0, 0, 0, 4 * 19
        row     0x21, 0x10, 0x0b000000, 0x0b000000 - _START // instruction abort from EL1
        row     0x15, 0x1234, 0, 4 * 29
        row     0x3c, 0xffff, 0, 4 * 30
        row     0, 0, 0, 4 * 32
        row     0x24, 0x10, 0x0b000010, 4 * 34
        row     0x24, 0x50, 0x0b000000, 4 * 38
        row     0, 0, 0, 4 * 40
        row     0x20, 0x10, 0x0b000000, 0x0b000000 - _START
        row     0x15, 1, 0, 4 * 45
        .set    _START, 0x40080000
        .set    NOTED_MISALIGNED, 0x40080000 + MISALIGNED_AT
        functions
        vectors take, bad, take, bad
        .set    MISALIGNED_AT, noted - _start + 3
        .balign 8
noted:  .skip   24 * (NOTED + 1)
