// Overflows by LVT_PMC: as an interrupt and as an NMI; taken, masked, pending and cleared. The exit status says how many of
// the checks fail: interrupts come right behind the instruction that makes a counter overflow.
        .include "pc.x86_64.inc"
        image

// 8: counter 0 is about to overflow with the instruction of that number.
        .macro  overflow_with number
        wr      PMC0, -\number          // 4
        wr      GLOBAL_CTRL, 1          // 4
        .endm

// 8: the status is what it should be, and is cleared.
        .macro  clear_status value
        rd      GLOBAL_STATUS           // 4
        expect  \value                  // 3
        wr      GLOBAL_STATUS_RESET, 1  // 4
        .endm

main:   wr      GLOBAL_CTRL, 0          // 4
        wr      PERFEVTSEL0, INSTRUCTIONS | USR | OS | INT | EN // 4
        xor     %r13d, %r13d            // 1

// Taken; the local APIC masks its entry as it delivers it.
        apic    LVT_PMC, VECTOR         // 1  store
        sti                             // 1
        overflow_with 3                 // 8
        nops    3                       // 3
1:      stop                            // 4
        expect_at 1b                    // 4
        expect_taken 1                  // 4
        mov     LVT_PMC(%r15), %eax     // 1  load
        expect  VECTOR | MASKED         // 3
        clear_status 1                  // 11

// Masked by that: the status tells of the overflow, and no interrupt does, also not when it is unmasked behind the reset.
        overflow_with 1                 // 8
        nops    2                       // 2
        stop                            // 4
        clear_status 1                  // 11
        apic    LVT_PMC, VECTOR         // 1  store
        nops    1                       // 1
        expect_taken 1                  // 4

// Pending while interrupts are off: it comes behind the instruction behind STI, though the status is clear by then.
        cli                             // 1
        overflow_with 2                 // 8
        nops    3                       // 3
        stop                            // 4
        clear_status 1                  // 11
        expect_taken 1                  // 4
        sti                             // 1
        nop                             // 1
1:      expect_taken 2                  // 4
        expect_at 1b                    // 4

// An overflow without INT is none.
        apic    LVT_PMC, VECTOR         // 1  store
        wr      PERFEVTSEL0, INSTRUCTIONS | USR | OS | EN // 4
        overflow_with 2                 // 8
        nops    3                       // 3
        stop                            // 4
        clear_status 1                  // 11
        expect_taken 2                  // 4

// As an NMI, though interrupts are off; that masks its entry, too.
        wr      PERFEVTSEL0, INSTRUCTIONS | USR | OS | INT | EN // 4
        cli                             // 1
        apic    LVT_PMC, NMI            // 1  store
        overflow_with 4                 // 8
        nops    4                       // 4
1:      stop                            // 4
        expect_at 1b                    // 4
        expect_taken 3                  // 4
        mov     LVT_PMC(%r15), %eax     // 1  load
        expect  NMI | MASKED            // 3
        clear_status 1                  // 11
        overflow_with 1                 // 8
        nops    2                       // 2
        stop                            // 4
        clear_status 1                  // 11
        expect_taken 3                  // 4

// Two counters, of which the second overflows with the handler's second instruction: the entry is masked by then.
        wr      PERFEVTSEL0 + 1, INSTRUCTIONS | OS | INT | EN // 4
        apic    LVT_PMC, NMI            // 1  store
        wr      PMC0 + 1, -5            // 4
        wr      PMC0, -3                // 4
        wr      GLOBAL_CTRL, 3          // 4
        nops    3                       // 3
1:      stop                            // 4
        expect_at 1b                    // 4
        expect_taken 4                  // 4
        rd      GLOBAL_STATUS           // 4
        expect  3                       // 3
        wr      GLOBAL_STATUS_RESET, 3  // 4
        wr      PERFEVTSEL0 + 1, 0      // 4

// With privilege 3: of USR alone, as an interrupt, behind its second instruction.
        wr      PERFEVTSEL0, INSTRUCTIONS | USR | INT | EN // 4
        apic    LVT_PMC, VECTOR         // 1  store
        overflow_with 2                 // 8
        in_user user, 0x202             // 7, and there 5, and 1
        stop                            // 4
        expect_at second                // 4
        expect_taken 5                  // 4
        clear_status 1                  // 11
        mov     $text, %esi             // 1
        jmp     end                     // 1, and of its own 4 * 1 + 3 * 14 + 2 * 13: "5 interrupts\n"

user:   nops    2                       // 2
second: nops    2                       // 2
        int     $CALL                   // 1
text:   .asciz  "5 interrupts\n"

        gates
        gate    2, nmi
        gate    VECTOR, interrupted
        gate    CALL, called, 3
        gates_end
