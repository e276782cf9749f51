// The MMU, with tables of 4 KiB pages: faults of translation, access flag and permission at both levels, each mended by the
// handler in the tables, which then lets the access happen. Exit status: differences of ESR and FAR from a table.
        .include "virt.aarch64.inc"
        .set    TABLES, 0x40100000
        .set    LEVEL_3, TABLES + 0x2000
        .set    DEVICES, 0x0060000000000401     // a block that is accessed; never executed
        .set    PAGE, 0x703                     // a page that is accessed; of EL1
        .set    EMPTY, 0x40180000               // a page without an entry, until it is wanted
        .set    UNUSED, 0x40181000              // its access flag is clear
        .set    READ_ONLY, 0x40182000
        .set    KERNELS, 0x40183000             // not EL0's
        .set    NO_CODE, 0x40184000             // of EL0, and never executed
        .set    BEYOND, 0x41000000              // level 2 has no entry: nothing is mended there, and the access is skipped

        .text
        .globl  _start
_start: use_vectors                     // 3
        movz    x21, #TABLES >> 16, lsl #16 // 1
        ldr     x0, =DEVICES            // 1  load
        str     x0, [x21]               // 1  store   level 1: GiB 0
        add     x0, x21, #0x1000        // 1
        orr     x1, x0, #3              // 1
        str     x1, [x21, #8]           // 1  store   GiB 1: level 2
        add     x2, x21, #0x2000        // 1
        orr     x1, x2, #3              // 1
        str     x1, [x0]                // 1  store   its first 2 MiB: level 3
        movz    x0, #0x4000, lsl #16    // 1
        add     x0, x0, #PAGE           // 1
        mov     x1, #512                // 1
1:      str     x0, [x2], #8            // 512  store
        add     x0, x0, #0x1000         // 512
        subs    x1, x1, #1              // 512
        b.ne    1b                      // 512, of which 511 taken
        add     x21, x21, #0x2000       // 1
        adr     x10, pages              // 1
        mov     x11, #5                 // 1
2:      ldp     x0, x1, [x10], #16      // 5  load
        str     x1, [x21, x0]           // 5  store
        subs    x11, x11, #1            // 5
        b.ne    2b                      // 5, of which 4 taken
        sub     x0, x21, #0x2000        // 1
        msr     ttbr0_el1, x0           // 1
        ldr     x0, =25 + (1 << 23)     // 1  load   T0SZ: 39 bits; EPD1: no upper half
        msr     tcr_el1, x0             // 1
        isb                             // 1
        mrs     x0, sctlr_el1           // 1
        orr     x0, x0, #1              // 1  M
        msr     sctlr_el1, x0           // 1
        isb                             // 1
        adr     x10, expected           // 1
        mov     x19, #0                 // 1
        mov     x12, #0x1234            // 1
        ldr     x5, =EMPTY + 8          // 1  load
        str     x12, [x5]               // 1  store   twice, and retires once: translation, level 3
        ldr     x13, [x5]               // 1  load
        ldr     x5, =UNUSED             // 1  load
        ldr     x14, [x5]               // 1  load    access flag, level 3
        ldr     x5, =READ_ONLY + 0x40   // 1  load
        str     x12, [x5]               // 1  store   permission, level 3
        ldr     x14, [x5]               // 1  load
        ldr     x5, =BEYOND + 0x123     // 1  load
        ldrb    w14, [x5]               //            translation, level 2: skipped
        ldr     x5, =NO_CODE + 0x100    // 1  load
        ldr     x14, =0xd65f03c0d503201f // 1  load   NOP, RET
        str     x14, [x5]               // 1  store
        dc      cvau, x5                // 1
        dsb     ish                     // 1
        ic      ivau, x5                // 1
        dsb     ish                     // 1
        isb                             // 1
        blr     x5                      // 1  what EL0 may write EL1 does not execute: permission, level 3, in a fetch
        to_user user                    // 5  and in that page 2, when it has become one that EL1 executes: NOP, RET

        .balign 4096                    //    a page that EL0 may execute
user:   ldr     x5, =KERNELS            // 1  load
        ldr     x14, [x5, #16]          // 1  load    permission, level 3
        ldr     x5, =NO_CODE + 0x100    // 1  load
        blr     x5                      // 1          permission, level 3, in a fetch; and there NOP, RET: 2
        ldr     x5, =0xffffff8000000000 // 1  load
        ldr     x14, [x5]               //            EPD1: translation, level 0
        cmp     x13, x12                // 1
        cset    x14, ne                 // 1
        ldr     x5, =KERNELS + 0x800    // 1  load
        str     x12, [x5]               // 1  store   EL0's by now
        svc     #0                      // 1
        .ltorg
        .balign 4096

// Behind each of 8 faults, and the SVC that ends it.
take:   mrs     x0, esr_el1             // 9
        mrs     x1, far_el1             // 9
        lsr     x2, x0, #26             // 9
        cmp     x2, #0x15               // 9
        b.eq    end                     // 9, of which 1 taken
        ldp     x2, x3, [x10], #16      // 8  load
        cmp     x0, x2                  // 8
        cinc    x19, x19, ne            // 8
        cmp     x1, x3                  // 8
        cinc    x19, x19, ne            // 8
        ldr     x2, [x10], #8           // 8  load   the entry that mends it; 0: the access is skipped
        cbz     x2, 1f                  // 8, of which 2 taken
        ubfx    x3, x1, #12, #9         // 6
        str     x2, [x21, x3, lsl #3]   // 6  store
        lsr     x3, x1, #12             // 6
        dsb     ishst                   // 6
        tlbi    vae1is, x3              // 6
        dsb     ish                     // 6
        eret                            // 6
1:      mrs     x2, elr_el1             // 2
        add     x2, x2, #4              // 2
        msr     elr_el1, x2             // 2
        eret                            // 2

end:    add     x19, x19, x14           // 1
        adr     x1, text                // 1
        bl      print                   // 1, and of its own 4 * 9 + 4: "8 faults\n"
        mov     x1, x19                 // 1
        b       end_with                // 1, and of its own 4
        .ltorg

text:   .asciz  "8 faults\n"
        .set    USER, 1 << 6
        .set    NO_WRITE, 1 << 7
        .set    PXN, 1 << 53
        .set    UXN, 1 << 54
        .macro  page address, entry
        .quad   ((\address >> 12) & 511) << 3, \entry
        .endm
        .balign 16
pages:  page    EMPTY, 0
        page    UNUSED, UNUSED | (PAGE & ~(1 << 10))
        page    READ_ONLY, READ_ONLY | PAGE | NO_WRITE
        page    NO_CODE, NO_CODE | PAGE | USER | UXN
        page    USERS, USERS | PAGE | USER | NO_WRITE
        .set    USERS, 0x40080000 + USER_AT
        .set    USER_AT, user - _start
        .macro  row class, specific, far, entry
        .quad   (\class << 26) | (1 << 25) | \specific, \far, \entry
        .endm
expected:
        row     0x25, 0x47, EMPTY + 8, EMPTY | PAGE              // data abort from EL1, of a write: translation, level 3
        row     0x25, 0x0b, UNUSED, UNUSED | PAGE                // access flag, level 3
        row     0x25, 0x4f, READ_ONLY + 0x40, READ_ONLY | PAGE   // permission, level 3
        row     0x25, 0x06, BEYOND + 0x123, 0                    // translation, level 2
        row     0x21, 0x0f, NO_CODE + 0x100, NO_CODE | PAGE | USER | NO_WRITE | UXN // of a fetch
        row     0x24, 0x0f, KERNELS + 16, KERNELS | PAGE | USER  // from EL0
        row     0x20, 0x0f, NO_CODE + 0x100, NO_CODE | PAGE | USER | NO_WRITE
        row     0x24, 0x04, 0xffffff8000000000, 0                // translation, level 0
        functions
        vectors take, bad, take, bad
