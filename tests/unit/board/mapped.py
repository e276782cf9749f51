"""Code that turns the MMU on: RAM's first 2 MiB page by page, where they are, and devices."""

from __future__ import annotations

from emulator.board.virt_tree import RAM_BASE

TABLES = RAM_BASE + 0x10_0000  # levels 1, 2, 3: a page each
LEVEL_3 = TABLES + 0x2000
ALIAS = 0x4000_0000  # RAM is in the next GiB, too
DEVICES, PAGE = 0x60_0000_0000_0401, 0x703  # blocks and pages that are accessed; nothing is executed in devices
# Afterwards x21 is the level-3 table, whose entry n is for RAM_BASE + n * 4096. Uses x0 to x4.
MMU_ON = f"""
        movz    x21, #{TABLES >> 16}, lsl #16
        ldr     x0, ={DEVICES}
        str     x0, [x21]
        add     x0, x21, #0x1000
        orr     x1, x0, #3
        str     x1, [x21, #8]
        str     x1, [x21, #16]
        add     x2, x21, #0x2000
        orr     x1, x2, #3
        str     x1, [x0]
        movz    x0, #{RAM_BASE >> 16}, lsl #16
        add     x0, x0, #{PAGE}
        mov     x1, #512
1:      str     x0, [x2], #8
        add     x0, x0, #0x1000
        subs    x1, x1, #1
        b.ne    1b
        msr     ttbr0_el1, x21
        add     x21, x21, #0x2000
        ldr     x0, =25 + (1 << 23)     // T0SZ: 39 bits; EPD1
        msr     tcr_el1, x0
        isb
        mrs     x0, sctlr_el1
        orr     x0, x0, #1
        msr     sctlr_el1, x0
        isb
        b       2f
        .ltorg
2:
"""
