// AMD's counters, PerfMonV2: filters, the numbers that the K7 had for them, interrupts by LVT_PMC, which the local APIC does
// not mask, and freezes. The exit status says how many of the checks fail.
        .include "pc.x86_64.inc"
        image
        .set    PERF_CTL0, 0xC0010200
        .set    PERF_CTR0, 0xC0010201
        .set    OLD_CTL0, 0xC0010000
        .set    OLD_CTR0, 0xC0010004
        .set    STATUS, 0xC0000300
        .set    GLOBAL_CTRL, 0xC0000301
        .set    STATUS_CLEAR, 0xC0000302
        .set    STATUS_SET, 0xC0000303
        .set    FPCI, 0x1000            // of DebugCtl
        .set    FROZEN, 0x08000000      // PMCF, in the upper half

// PerfMonV2, and four counters at least; leaf 8000_0022H is there.
main:   wr      GLOBAL_CTRL, 0          // 4    at reset all are enabled
        xor     %r13d, %r13d            // 1
        mov     $0x80000022, %eax       // 1
        cpuid                           // 1
        not     %eax                    // 1
        and     $1, %eax                // 1
        add     %rax, %r12              // 1
        and     $15, %ebx               // 1
        cmp     $4, %ebx                // 1
        adc     $0, %r12                // 1

// Both levels, Os, User, and none: in_user's seven, and behind the call one and stop's four; two and the call.
        wr      PERF_CTL0, INSTRUCTIONS | USR | OS | EN // 4
        wr      PERF_CTL0 + 2, INSTRUCTIONS | OS | EN // 4
        wr      PERF_CTL0 + 4, INSTRUCTIONS | USR | EN // 4
        wr      PERF_CTL0 + 6, INSTRUCTIONS | EN // 4
        wr      GLOBAL_CTRL, 15         // 4
        in_user user                    // 7, and there 3, and 1
        stop                            // 4
        count   0                       // 4
        expect  7 + 3 + 1 + 4           // 3
        rd      OLD_CTR0                // 4
        expect  7 + 3 + 1 + 4           // 3
        count   1                       // 4
        expect  7 + 1 + 4               // 3
        rd      PERF_CTR0 + 4           // 4
        expect  3                       // 3
        count   3                       // 4
        expect  0                       // 3
        wr      GLOBAL_CTRL, 0          // 4

// An NMI right behind the overflow. The entry is not masked: a second one comes without more, and by the old numbers.
        apic    LVT_PMC, NMI            // 1  store
        wr      PERF_CTL0, INSTRUCTIONS | USR | OS | INT | EN // 4
        wr      PERF_CTR0, -3, 0xFFFF   // 4
        wr      GLOBAL_CTRL, 1          // 4
        nops    3                       // 3
1:      stop                            // 4
        expect_at 1b                    // 4
        expect_taken 1                  // 4
        mov     LVT_PMC(%r15), %eax     // 1  load
        expect  NMI                     // 3
        wr      OLD_CTL0, INSTRUCTIONS | USR | OS | INT | EN // 4
        wr      OLD_CTR0, -2, 0xFFFF    // 4
        wr      GLOBAL_CTRL, 1          // 4
        nops    2                       // 2
1:      stop                            // 4
        expect_at 1b                    // 4
        expect_taken 2                  // 4    the status as it was
        rd      STATUS                  // 4
        expect  1                       // 3
        wr      STATUS_CLEAR, 1         // 4
        rd      STATUS                  // 4
        expect  0                       // 3

// While the entry is masked it is lost.
        apic    LVT_PMC, NMI + MASKED   // 1  store
        wr      PERF_CTR0, -2, 0xFFFF   // 4
        wr      GLOBAL_CTRL, 1          // 4
        nops    2                       // 2
        stop                            // 4
        apic    LVT_PMC, NMI            // 1  store
        nops    2                       // 2
        expect_taken 2                  // 4
        rd      STATUS                  // 4
        expect  1                       // 3
        wr      STATUS_CLEAR, 1         // 4

// Two counters, of which the second overflows with the handler's second instruction: that NMI comes behind the first one's
// IRET, at the same place.
        wr      PERF_CTL0 + 2, INSTRUCTIONS | OS | INT | EN // 4
        wr      PERF_CTR0 + 2, -5, 0xFFFF // 4
        wr      PERF_CTR0, -3, 0xFFFF   // 4
        wr      GLOBAL_CTRL, 3          // 4
        nops    3                       // 3
1:      stop                            // 4
        expect_at 1b                    // 4
        expect_taken 4                  // 4
        rd      STATUS                  // 4
        expect  3                       // 3
        wr      STATUS_CLEAR, 3         // 4
        wr      PERF_CTL0 + 2, INSTRUCTIONS | OS | EN // 4

// A freeze: all stand still at the overflow, until PMCF is cleared: then three are counted, and stop's.
        wr      DEBUGCTL, FPCI          // 4
        wr      PERF_CTR0 + 2, 0        // 4
        wr      PERF_CTR0, -2, 0xFFFF   // 4
        wr      GLOBAL_CTRL, 3          // 4
        nops    4                       // 4
        expect_taken 5                  // 4
        count   0                       // 4
        expect  0                       // 3
        count   1                       // 4
        expect  2                       // 3
        rd      STATUS                  // 4
        expect_64 FROZEN << 32 | 1      // 4
        rd      GLOBAL_CTRL             // 4
        expect  3                       // 3
        wr      STATUS_CLEAR, 1, FROZEN // 4
        nops    3                       // 3
        stop                            // 4
        count   1                       // 4
        expect  2 + 3 + 4               // 3

// Software sets the status, and what is reserved ignores writes; the status itself is not written.
        wr      STATUS_SET, 2, FROZEN   // 4
        rd      STATUS                  // 4
        expect_64 FROZEN << 32 | 2      // 4
        wr      STATUS_CLEAR, 2, FROZEN + 0x80000000 // 4
        mov     $STATUS, %ecx           // 1
1:      wrmsr                           // never, and 5
        expect_taken 6                  // 4
        expect_at 1b                    // 4
        rd      STATUS                  // 4
        expect  0                       // 3
        mov     $text, %esi             // 1
        jmp     end                     // 1, and of its own 4 * 1 + 3 * 16 + 2 * 15: "AMD's counters\n"

user:   nops    2                       // 2
        int     $CALL                   // 1
text:   .asciz  "AMD's counters\n"

        gates
        gate    2, nmi
        gate    13, protected
        gate    CALL, called, 3
        gates_end
