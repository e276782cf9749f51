// Where CPUs begin: the MMU on, a stack, the vectors; then C. And where interrupts and exceptions come.
        .set    STACK_SHIFT, 14
        .set    MOST_CPUS, 8
        .set    SAVED_BYTES, 208

        .section .text.start, "ax"
        .globl  _start
_start: mov     x19, x0                 // the device tree, if the loader says where
        adrp    x1, bss_start
        add     x1, x1, :lo12:bss_start
        adrp    x2, bss_end
        add     x2, x2, :lo12:bss_end
1:      cmp     x1, x2
        b.hs    2f
        stp     xzr, xzr, [x1], #16
        b       1b
2:      mov     x0, #0
        bl      prepare
        mov     x0, x19
        bl      main
        b       .

// From CPU_ON, with the number in X0
        .globl  secondary
secondary:
        mrs     x20, sctlr_el1
        mrs     x21, daif
        mrs     x22, spsel
        mov     x19, x0
        bl      prepare
        mov     x0, x19
        mov     x4, #5                  // C, M
        and     x1, x20, x4
        lsr     x2, x21, #6
        mov     x3, x22
        bl      works
        b       .

// X0: the number. Normal, cacheable memory from 1 GiB on, devices below: so may exclusives be used.
prepare:
        adrp    x1, stacks
        add     x1, x1, :lo12:stacks
        add     x2, x0, #1
        add     x1, x1, x2, lsl #STACK_SHIFT
        msr     spsel, #1
        mov     sp, x1
        adrp    x1, vectors
        msr     vbar_el1, x1
        mov     x1, #0xff               // MAIR: 0 normal, 1 Device-nGnRnE
        msr     mair_el1, x1
        ldr     x1, =0x100803520        // TCR: T0SZ 32, 4 KiB, inner shareable, write back, no TTBR1; 36 bits
        msr     tcr_el1, x1
        adrp    x1, table
        msr     ttbr0_el1, x1
        isb
        tlbi    vmalle1
        dsb     sy
        isb
        ldr     x1, =0x30d01805         // SCTLR: I, C, M, and what is 1 without later features; EL0 may do nothing
        msr     sctlr_el1, x1
        isb
        ret
        .ltorg

        .section .data.table, "aw"
        .balign 4096
table:  .quad   0x0000000000000405 | 1 << 53 | 1 << 54 // devices, never executed
        .quad   0x0000000040000701 | 1 << 54 // RAM, inner shareable, of EL1
        .quad   0x0000000040000741      // the same at 2 GiB, of EL0, too
        .quad   pieces + 3              // at 3 GiB, in pieces of 2 MiB
        .fill   508, 8, 0
pieces: .quad   0x0000000040000781      // read only
        .quad   0x0000000040000301      // its access flag is not set
        .quad   0x0000000040000741 | 1 << 54 // of EL0, which must not execute it
        .quad   0x00000000400007c1      // of EL0, read only
        .fill   508, 8, 0

        .bss
        .balign 16
        .skip   16
stacks: .skip   MOST_CPUS << STACK_SHIFT

        .text
        .macro  entry name, argument
        .balign 128
        sub     sp, sp, #SAVED_BYTES
        stp     x0, x1, [sp]
        mov     x0, #\argument
        b       \name
        .endm
        .balign 4096                    // VBAR_EL1 wants 2048
vectors:
        entry   tried, 0                // synchronous, with SP_EL0
        .rept   3
        entry   unexpected, 1
        .endr
        entry   tried, 4                // synchronous
        entry   comes, 5                // IRQ
        entry   unexpected, 6
        entry   unexpected, 7
        entry   tried, 8                // synchronous, from EL0
        entry   tried, 9                // IRQ, from EL0
        .rept   6
        entry   unexpected, 10
        .endr

comes:  stp     x2, x3, [sp, #16]
        stp     x4, x5, [sp, #32]
        stp     x6, x7, [sp, #48]
        stp     x8, x9, [sp, #64]
        stp     x10, x11, [sp, #80]
        stp     x12, x13, [sp, #96]
        stp     x14, x15, [sp, #112]
        stp     x16, x17, [sp, #128]
        stp     x18, x29, [sp, #144]
        mrs     x0, elr_el1
        mrs     x1, spsr_el1
        stp     x30, x0, [sp, #160]
        str     x1, [sp, #176]
        bl      interrupt
        ldp     x30, x0, [sp, #160]
        ldr     x1, [sp, #176]
        msr     elr_el1, x0
        msr     spsr_el1, x1
        ldp     x2, x3, [sp, #16]
        ldp     x4, x5, [sp, #32]
        ldp     x6, x7, [sp, #48]
        ldp     x8, x9, [sp, #64]
        ldp     x10, x11, [sp, #80]
        ldp     x12, x13, [sp, #96]
        ldp     x14, x15, [sp, #112]
        ldp     x16, x17, [sp, #128]
        ldp     x18, x29, [sp, #144]
        ldp     x0, x1, [sp], #SAVED_BYTES
        eret

// X0: code that makes an exception; X1: PSTATE at which; X2: X0 there. Back comes the number of the vector; ESR_EL1,
// ELR_EL1 and FAR_EL1 are as the exception has left them.
        .globl  try
try:    stp     x29, x30, [sp, #-96]!
        stp     x19, x20, [sp, #16]
        stp     x21, x22, [sp, #32]
        stp     x23, x24, [sp, #48]
        stp     x25, x26, [sp, #64]
        stp     x27, x28, [sp, #80]
        adrp    x3, trying
        add     x3, x3, :lo12:trying
        mov     x4, sp
        str     x4, [x3]
        msr     elr_el1, x0
        msr     spsr_el1, x1
        msr     far_el1, xzr
        mov     x0, x2
        eret
tried:  adrp    x3, trying
        add     x3, x3, :lo12:trying
        ldr     x4, [x3]
        cbz     x4, unexpected
        str     xzr, [x3]
        msr     spsel, #1
        mov     sp, x4
        ldp     x19, x20, [sp, #16]
        ldp     x21, x22, [sp, #32]
        ldp     x23, x24, [sp, #48]
        ldp     x25, x26, [sp, #64]
        ldp     x27, x28, [sp, #80]
        ldp     x29, x30, [sp], #96
        ret

        .bss
        .balign 8
trying: .skip   8                       // SP of who tries, else 0

        .text
unexpected:
        mrs     x1, esr_el1
        mrs     x2, elr_el1
        bl      exception
        b       .

// Each CALL is X0 of the answer; the arguments are in their registers already.
        .globl  call_hvc, call_smc, retired
call_hvc:
        hvc     #0
        ret
call_smc:
        smc     #0
        ret

// Counter 0 while it counts: 3 * X0 + 3 of them, from behind the write of E on.
retired:
        mov     x2, #1
        msr     pmcr_el0, x2
        isb                             // 1
        mov     x1, x0                  // 1
1:      nop                             // X0
        subs    x1, x1, #1              // X0
        b.ne    1b                      // X0
        msr     pmcr_el0, xzr           // 1
        isb
        mrs     x0, pmevcntr0_el0
        ret
