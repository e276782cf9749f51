// RDPMC with privilege 0 and 3, by CR4.PCE; RDMSR and WRMSR with 3; counters that there are not. The exit status says how
// many of the checks fail.
        .include "pc.x86_64.inc"
        image
        .set    PCE, 0x100
        .set    RDPMC_FIXED, 1 << 30
        .set    VALUE, 0x1234

main:   wr      GLOBAL_CTRL, 0          // 4
        xor     %r13d, %r13d            // 1
        wr      PMC0, VALUE             // 4
        wr      FIXED_CTR0, VALUE + 1, 2 // 4

// With privilege 0, whatever CR4.PCE says.
        count   0                       // 4
        expect  VALUE                   // 3
        count   RDPMC_FIXED             // 4
        expect_64 2 << 32 | VALUE + 1   // 4

// With privilege 3 not without it: three times #GP(0), for RDPMC, RDMSR and WRMSR, the last at `denied`.
        in_user user                    // 7, and there 4 and 3 times 5, and 1
        expect_taken 3                  // 4
        expect_at denied                // 4
        mov     %r9, %rax               // 1
        expect  0                       // 3

// ... and with it: RDMSR and WRMSR are refused as before.
        mov     %cr4, %rax              // 1
        or      $PCE, %rax              // 1
        mov     %rax, %cr4              // 1
        in_user user                    // 7, and there 5 and 2 times 5, and 1
        mov     %r8, %rax               // 1
        expect  VALUE                   // 3
        expect_taken 5                  // 4

// Counters that are not there, of both kinds, and with bits that select nothing: four times #GP(0).
        mov     $7, %ecx                // 1
1:      mov     absent(, %rcx, 4), %ebx // 8  load
        xchg    %rcx, %rbx              // 8
        rdpmc                           // never
        mov     %rbx, %rcx              // 8
        dec     %ecx                    // 8
        jns     1b                      // 8, of which 7 taken
        expect_taken 5 + 8              // 4
        mov     $text, %esi             // 1
        jmp     end                     // 1, and of its own 4 * 1 + 3 * 7 + 2 * 6: "rdpmc\n"

user:   xor     %ecx, %ecx              // 2
        rdpmc                           // 1, the second time
        mov     %eax, %r8d              // 2
        mov     $PMC0, %ecx             // 2
        rdmsr                           // never
denied: wrmsr                           // never
        int     $CALL                   // 2
text:   .asciz  "rdpmc\n"
        .balign 4
absent: .long   32, 255, 1 << 28, 1 << 31, RDPMC_FIXED + 16, RDPMC_FIXED | 1 << 29, 1 << 20, 1 << 16

        gates
        gate    13, protected
        gate    CALL, called, 3
        gates_end
