// FREEZE_PERFMON_ON_PMI, and the status: what sets it, and what clears it. The exit status says how many of the checks fail.
        .include "pc.x86_64.inc"
        image
        .set    FROZEN, 0x08000000      // CTR_FRZ, in the upper half

main:   wr      GLOBAL_CTRL, 0          // 4
        xor     %r13d, %r13d            // 1
        wr      PERFEVTSEL0, INSTRUCTIONS | USR | OS | INT | EN // 4
        wr      PERFEVTSEL0 + 1, INSTRUCTIONS | USR | OS | EN // 4

// All stand still at the overflow, in the handler and behind it; the global control says what it did.
        wr      DEBUGCTL, FREEZE_PERFMON_ON_PMI // 4
        apic    LVT_PMC, VECTOR         // 1  store
        sti                             // 1
        wr      PMC0, -3                // 4
        wr      GLOBAL_CTRL, 3          // 4
        nops    5                       // 5, of which the third is the last that is counted
        expect_taken 1                  // 4
        count   0                       // 4
        expect  0                       // 3
        count   1                       // 4
        expect  3                       // 3
        rd      GLOBAL_STATUS           // 4
        expect_64 FROZEN << 32 | 1      // 4
        rd      GLOBAL_CTRL             // 4
        expect  3                       // 3

// The overflow's bit is not what holds them, CTR_FRZ is: counted are three behind its reset, and stop's.
        wr      GLOBAL_STATUS_RESET, 1  // 4
        nops    2                       // 2
        count   1                       // 4
        expect  3                       // 3
        wr      GLOBAL_STATUS_RESET, 0, FROZEN // 4
        nops    3                       // 3
        stop                            // 4
        count   0                       // 4
        expect  3 + 4                   // 3
        count   1                       // 4
        expect  3 + 3 + 4               // 3
        rd      GLOBAL_STATUS           // 4
        expect  0                       // 3

// Software sets both, without an overflow; counter 1 does not interrupt. What is frozen by that does not count.
        wr      GLOBAL_STATUS_SET, 2, FROZEN // 4
        wr      PMC0 + 1, 0             // 4
        wr      GLOBAL_CTRL, 2          // 4
        nops    2                       // 2
        rd      GLOBAL_STATUS           // 4
        expect_64 FROZEN << 32 | 2      // 4
        wr      GLOBAL_STATUS_RESET, 2, FROZEN // 4
        nops    1                       // 1
        stop                            // 4
        count   1                       // 4
        expect  1 + 4                   // 3
        rd      GLOBAL_STATUS           // 4
        expect  0                       // 3

// Without the freeze they count on: behind the overflow two, the handler's four before those, and stop's.
        wr      DEBUGCTL, 0             // 4
        apic    LVT_PMC, VECTOR         // 1  store
        wr      PMC0 + 1, 0             // 4
        wr      PMC0, -3                // 4
        wr      GLOBAL_CTRL, 3          // 4
        nops    5                       // 5
        stop                            // 4
        expect_taken 2                  // 4
        count   0                       // 4
        expect  2 + 4 + 4               // 3
        count   1                       // 4
        expect  3 + 2 + 4 + 4           // 3
        rd      GLOBAL_STATUS           // 4
        expect  1                       // 3
        mov     $text, %esi             // 1
        jmp     end                     // 1, and of its own 4 * 1 + 3 * 11 + 2 * 10: "2 freezes\n"
text:   .asciz  "2 freezes\n"

        gates
        gate    VECTOR, interrupted
        gates_end
