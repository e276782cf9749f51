// Two CPUs: the first starts the second; then both count at once, each its own instructions, and the second is interrupted
// by its own overflow. They wait for each other's interrupts in HLT. The exit status says how many of the checks fail.
        .include "pc.x86_64.inc"
        image
        .set    TRAMPOLINE, 0x8000
        .set    IPI, 0x40
        .set    FIRST_LOOPS, 1000
        .set    SECOND_LOOPS, 300
        .set    PERIOD, 400
        .set    FIRST_COUNT, 2 + 1 + 2 * FIRST_LOOPS + 4
        .set    SECOND_COUNT, 1 + 2 * SECOND_LOOPS + 4 + 4 - PERIOD

// 2, both stores: an interrupt for the other CPU.
        .macro  send to, what=0x4000 + IPI
        apic    0x310, \to << 24        // 1  store
        apic    0x300, \what            // 1  store
        .endm
// 3. HLT goes on when one is pending, whether that was before or behind.
        .macro  await
        sti                             // 1
        hlt                             // 1
        cli                             // 1
        .endm

main:   wr      GLOBAL_CTRL, 0          // 4
        xor     %r13d, %r13d            // 1
        mov     $trampoline, %esi       // 1
        mov     $TRAMPOLINE, %edi       // 1
        mov     $5, %ecx                // 1
        rep movsq                       // 1, 5 loads and stores
        send    1, 0x4500               // 2    INIT
        send    1, 0x4600 + TRAMPOLINE / 4096 // 2
        await                           // 3    it is there
        wr      PERFEVTSEL0, INSTRUCTIONS | USR | OS | INT | EN // 4
        wr      GLOBAL_CTRL, 1          // 4
        send    1                       // 2    it begins
        mov     $FIRST_LOOPS, %ecx      // 1
1:      dec     %ecx                    // 1000
        jnz     1b                      // 1000, of which 999 taken
        stop                            // 4
        count   0                       // 4
        expect  FIRST_COUNT             // 3
        await                           // 3    it has done
        expect_taken 0                  // 4    but for messages
        add     wrong, %r12             // 1  load
        mov     $text, %esi             // 1
        jmp     end                     // 1, and of its own 4 * 1 + 3 * 10 + 2 * 9: "two CPUs\n"

// Of both: three messages come.
message:
        apic    0xB0, 0                 // 1  store   EOI
        iretq                           // 1  branch

// The second CPU begins in real mode.
        .code16
        .balign 8
trampoline:
        xor     %ax, %ax                // 1
        mov     %ax, %ds                // 1
        lgdtl   TRAMPOLINE + (3f - trampoline) // 1
        mov     %cr0, %eax              // 1
        or      $1, %al                 // 1
        mov     %eax, %cr0              // 1
        ljmpl   $CODE_32, $second32     // 1  branch
3:      .word   gdt_pointer - gdt - 1
        .long   gdt
        .balign 8
        .code32
second32:
        mov     $DATA, %eax             // 1
        mov     %eax, %ds               // 1
        mov     $second, %ebp           // 1
        jmp     long_mode               // 1  branch, and there 19, a store and two branches
        .code64
// What it counts: the overflow is by the 399th of the loop's, a DEC. Behind it come what is left of the loop, the
// handler's four, and stop's.
second: mov     $second_stack_top, %esp // 1
        wr      GLOBAL_CTRL, 0          // 4
        xor     %r13d, %r13d            // 1
        wr      PERFEVTSEL0, INSTRUCTIONS | USR | OS | INT | EN // 4
        wr      PMC0, -PERIOD           // 4
        apic    LVT_PMC, VECTOR         // 1  store
        send    0                       // 2
        await                           // 3
        sti                             // 1
        wr      GLOBAL_CTRL, 1          // 4
        mov     $SECOND_LOOPS, %ecx     // 1
1:      dec     %ecx                    // 300
2:      jnz     1b                      // 300, of which 299 taken
        stop                            // 4
        cli                             // 1
        count   0                       // 4
        expect  SECOND_COUNT            // 3
        expect_at 2b                    // 4
        expect_taken 1                  // 4
        mov     %r12, wrong             // 1  store
        send    0                       // 2
        hlt                             // 1
text:   .asciz  "two CPUs\n"

        gates
        gate    IPI, message
        gate    VECTOR, interrupted
        gates_end
        .balign 16
        .skip   1024
second_stack_top:
wrong:  .skip   8
