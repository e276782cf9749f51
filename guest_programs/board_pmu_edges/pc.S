// CMASK, INV and E of the select registers. Of stalls, whose cycles are the core's model's to say, what must hold between
// counters is known: on every core it does, and on one without a pipeline there are none. The exit status says how many of
// the checks fail.
        .include "pc.x86_64.inc"
        image
        .set    CYCLES, 0x3C
        .set    STALLS, 0x01A2          // RESOURCE_STALLS.ANY: cycles
        .set    EDGE, 1 << 18
        .set    INVERT, 1 << 23
        .set    ONE, 1 << 24            // CMASK
        .set    TWO, 2 << 24
        .set    MOST, 255 << 24
        .set    LOOPS, 20
        .set    COUNTED, 5 * LOOPS + 4

// 141: what the four count at once: divisions that wait for each other, twenty times, and stop's four.
        .macro  count_four first, second, third, fourth
        wr      PERFEVTSEL0, \first + OS + EN // 4
        wr      PERFEVTSEL0 + 1, \second + OS + EN // 4
        wr      PERFEVTSEL0 + 2, \third + OS + EN // 4
        wr      PERFEVTSEL0 + 3, \fourth + OS + EN // 4
        .irp    number, 0, 1, 2, 3
        wr      PMC0 + \number, 0       // 4 each
        .endr
        mov     $LOOPS, %edi            // 1
        wr      GLOBAL_CTRL, 15         // 4
1:      mov     %rsi, %rax              // 20
        xor     %edx, %edx              // 20
        div     %rbx                    // 20
        dec     %edi                    // 20
        jnz     1b                      // 20, of which 19 taken
        stop                            // 4
        .endm

// 20: R8 to R11 are what they have counted.
        .macro  read_four
        .irp    number, 0, 1, 2, 3
        count   \number                 // 4 each
        .if     \number == 0
        mov     %rax, %r8               // 1
        .elseif \number == 1
        mov     %rax, %r9               // 1
        .elseif \number == 2
        mov     %rax, %r10              // 1
        .else
        mov     %rax, %r11              // 1
        .endif
        .endr
        .endm

// 3: that is one more wrong if the flag is set.
        .macro  wrong_if condition
        set\condition %al               // 1
        movzbl  %al, %eax               // 1
        add     %rax, %r12              // 1
        .endm

main:   wr      GLOBAL_CTRL, 0          // 4
        movabs  $0x123456789, %rsi      // 1
        mov     $3, %ebx                // 1

// Of cycles: there is one in each, never two, and fewer than 255.
        count_four CYCLES, CYCLES + ONE, CYCLES + TWO, CYCLES + MOST + INVERT // 141
        read_four                       // 20
        cmp     %r8, %r9                // 1
        wrong_if ne                     // 3
        test    %r10, %r10              // 1
        wrong_if ne                     // 3
        cmp     %r8, %r11               // 1
        wrong_if ne                     // 3

// No cycle is without one; INV means nothing without CMASK; and instructions are as many with none of them.
        count_four CYCLES + ONE + INVERT, INSTRUCTIONS + INVERT, INSTRUCTIONS, CYCLES // 141
        read_four                       // 20
        test    %r8, %r8                // 1
        wrong_if ne                     // 3
        cmp     $COUNTED, %r9           // 1
        wrong_if ne                     // 3
        cmp     $COUNTED, %r10          // 1
        wrong_if ne                     // 3

// Cycles with a stall, and those without, are all, where stalls are known. They begin no more often than they last cycles,
// and have one without between any two.
        count_four STALLS, STALLS + ONE + INVERT, STALLS + ONE + EDGE, CYCLES // 141
        read_four                       // 20
        lea     (%r8, %r9), %rax        // 1
        sub     %rax, %r11              // 1
        imul    %rax, %r11              // 1    zero, whichever is
        test    %r11, %r11              // 1
        wrong_if ne                     // 3
        cmp     %r8, %r10               // 1
        wrong_if a                      // 3
        inc     %r9                     // 1
        cmp     %r9, %r10               // 1
        wrong_if a                      // 3
        mov     $text, %esi             // 1
        jmp     end                     // 1, and of its own 4 * 1 + 3 * 7 + 2 * 6: "edges\n"
text:   .asciz  "edges\n"

        gates
        gates_end
