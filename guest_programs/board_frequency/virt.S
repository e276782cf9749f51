// At which frequency its CPU executes, asked for in each millisecond, as a scheduler's tick would: by the Activity
// Monitors' cycles since the last time, and by those of the 4 microseconds that follow. A line for each: four numbers of
// 8 digits, cycles and ticks of the system counter, since the last time and then of those microseconds.
        .include "virt.aarch64.inc"
        .set    TICKS, 62500            // of the counter: a millisecond
        .set    WINDOW, 256
        .set    LINES, 20

#define CYCLES          s3_3_c13_c4_0   // AMEVCNTR00_EL0
#define CONSTANT        s3_3_c13_c4_1   // AMEVCNTR01_EL0

        .text
        .globl  _start
_start: use_vectors
        mov     x28, #TICKS
        mov     x27, x28                // the counter at the next millisecond
        mov     x26, #LINES + 1         // of which the first is not printed

millisecond:
        mrs     x0, cntvct_el0
        cmp     x0, x27
        b.lo    millisecond
        mrs     x20, CYCLES
        mrs     x21, CONSTANT
        add     x22, x0, #WINDOW
1:      mrs     x0, cntvct_el0
        cmp     x0, x22
        b.lo    1b
        mrs     x18, CYCLES
        mrs     x19, CONSTANT
        cmp     x26, #LINES + 1
        b.eq    2f
        sub     x1, x20, x25            // since the last time
        mov     w7, #' '
        bl      hex
        sub     x1, x21, x24
        mov     w7, #' '
        bl      hex
        sub     x1, x18, x20            // in the window
        mov     w7, #' '
        bl      hex
        sub     x1, x19, x21
        mov     w7, #'\n'
        bl      hex
2:      mov     x25, x20
        mov     x24, x21
        add     x27, x27, x28
        sub     x26, x26, #1
        cbnz    x26, millisecond
        mov     x1, #0
        b       end_with

        hex_function 8

        .ltorg
        functions
        vectors bad, bad, bad, bad
