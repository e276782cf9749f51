// Fixed counters: each by its four bits of FIXED_CTR_CTRL, by the global control, with overflows and RDPMC. The exit status
// says how many of the checks fail.
        .include "pc.x86_64.inc"
        image
        .set    FIXED_OS, 1
        .set    FIXED_USR, 2
        .set    FIXED_PMI, 8
        .set    RDPMC_FIXED, 1 << 30

main:   wr      GLOBAL_CTRL, 0          // 4
        xor     %r13d, %r13d            // 1

// Counter 0 has instructions of both levels, then of each: in_user's seven, and behind the call one and stop's four; two and
// the call. Counter 1 has cycles, of which there is at least one for each four of them; without bits counter 2 has nothing.
        wr      FIXED_CTR_CTRL, 0x33    // 4    both levels
        wr      GLOBAL_CTRL, 0, 7       // 4
        in_user user                    // 7, and there 3, and 1
        stop                            // 4
        count   RDPMC_FIXED             // 4
        expect  7 + 3 + 1 + 4           // 3
        count   RDPMC_FIXED + 1         // 4
        cmp     $15 / 4, %rax           // 1
        adc     $0, %r12                // 1
        count   RDPMC_FIXED + 2         // 4
        expect  0                       // 3
        wr      FIXED_CTR0, 0           // 4
        wr      FIXED_CTR_CTRL, FIXED_OS // 4
        wr      GLOBAL_CTRL, 0, 1       // 4
        in_user user                    // 7, and there 3, and 1
        stop                            // 4
        rd      FIXED_CTR0              // 4
        expect  7 + 1 + 4               // 3
        wr      FIXED_CTR0, 0           // 4
        wr      FIXED_CTR_CTRL, FIXED_USR // 4
        wr      GLOBAL_CTRL, 0, 1       // 4
        in_user user                    // 7, and there 3, and 1
        stop                            // 4
        rd      FIXED_CTR0              // 4
        expect  3                       // 3

// Not without its bit of the global control, which is not that of general-purpose counter 0.
        wr      FIXED_CTR0, 0           // 4
        wr      FIXED_CTR_CTRL, FIXED_OS | FIXED_USR // 4
        wr      GLOBAL_CTRL, 1, 2       // 4
        nops    3                       // 3
        stop                            // 4
        rd      FIXED_CTR0              // 4
        expect  0                       // 3

// At 2^48 it overflows, into bit 32 of the status, and with PMI it interrupts, right behind.
        apic    LVT_PMC, VECTOR         // 1  store
        sti                             // 1
        wr      FIXED_CTR0, -2, 0xFFFF  // 4
        wr      GLOBAL_CTRL, 0, 1       // 4
        nops    3                       // 3
        stop                            // 4
        expect_taken 0                  // 4
        rd      GLOBAL_STATUS           // 4
        expect_64 1 << 32               // 4
        wr      GLOBAL_STATUS_RESET, 0, 1 // 4
        wr      FIXED_CTR_CTRL, FIXED_OS | FIXED_USR | FIXED_PMI // 4
        wr      FIXED_CTR0, -3, 0xFFFF  // 4
        wr      GLOBAL_CTRL, 0, 1       // 4
        nops    3                       // 3
1:      stop                            // 4
        expect_taken 1                  // 4
        expect_at 1b                    // 4
        rd      FIXED_CTR0              // 4
        expect  4 + 4                   // 3    the handler, and stop
        rd      GLOBAL_STATUS           // 4
        expect_64 1 << 32               // 4
        mov     $text, %esi             // 1
        jmp     end                     // 1, and of its own 4 * 1 + 3 * 16 + 2 * 15: "fixed counters\n"

user:   nops    2                       // 2, three times
        int     $CALL                   // 1
text:   .asciz  "fixed counters\n"

        gates
        gate    VECTOR, interrupted
        gate    CALL, called, 3
        gates_end
