// Widths: 32 bits with a sign by IA32_PMC0, 48 by IA32_A_PMC0 and for counting. The exit status says how many of the checks
// fail.
        .include "pc.x86_64.inc"
        image

main:   wr      GLOBAL_CTRL, 0          // 4
        xor     %r13d, %r13d            // 1

// What is written by IA32_PMC0: its lower half, whose sign is all that is above.
        wr      PMC0, 0x80000000, 0x1234 // 4
        rd      PMC0                    // 4
        expect_64 0xFFFF80000000        // 4
        wr      PMC0, 0x7FFFFFFF, 0x1234 // 4
        count   0                       // 4
        expect  0x7FFFFFFF              // 3

// ... and by IA32_A_PMC0: all 48 bits; more are #GP(0).
        wr      A_PMC0, 0x80000000, 0x1234 // 4
        rd      PMC0                    // 4
        expect_64 0x123480000000        // 4
        rd      A_PMC0                  // 4
        expect_64 0x123480000000        // 4
        mov     $A_PMC0, %ecx           // 1
        mov     $0x10000, %edx          // 1
1:      wrmsr                           // never, and 5
        expect_taken 1                  // 4
        expect_at 1b                    // 4

// Counted across 2^32, there is a carry and no overflow: three, and stop's.
        wr      PERFEVTSEL0, INSTRUCTIONS | OS | EN // 4
        wr      A_PMC0, -2, 0           // 4
        wr      GLOBAL_CTRL, 1          // 4
        nops    3                       // 3
        stop                            // 4
        count   0                       // 4
        expect_64 0x100000005           // 4
        rd      GLOBAL_STATUS           // 4
        expect  0                       // 3

// Across 2^48 it begins anew, with an overflow.
        wr      A_PMC0, -2, 0xFFFF      // 4
        wr      GLOBAL_CTRL, 1          // 4
        nops    3                       // 3
        stop                            // 4
        count   0                       // 4
        expect  5                       // 3
        rd      GLOBAL_STATUS           // 4
        expect  1                       // 3
        mov     $text, %esi             // 1
        jmp     end                     // 1, and of its own 4 * 1 + 3 * 8 + 2 * 7: "widths\n"
text:   .asciz  "widths\n"

        gates
        gate    13, protected
        gates_end
