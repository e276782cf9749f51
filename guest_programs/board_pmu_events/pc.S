// What CPUID says of events, and what they count, to the digit: instructions, branches, loads and stores. The exit status says
// how many of the checks fail.
        .include "pc.x86_64.inc"
        image
        .set    LOOPS, 20
        .set    CYCLES, 0x3C
        .set    CONDITIONAL, 0x11C4     // BR_INST_RETIRED.COND
        .set    LOADS, 0x81D0           // MEM_INST_RETIRED.ALL_LOADS
        .set    STORES, 0x82D0
        .set    ALL_INSTRUCTIONS, 6 * LOOPS + 4
        .set    LOADS_IN_ALL, 3 * LOOPS
        .set    STORES_IN_ALL, 2 * LOOPS
        .set    ADDED, 2 * LOOPS

// What is counted: three loads and two stores, twenty times, and stop's four.
        .macro  count_two first, second
        wr      PERFEVTSEL0, \first + OS + EN // 4
        wr      PERFEVTSEL0 + 1, \second + OS + EN // 4
        wr      PMC0, 0                 // 4
        wr      PMC0 + 1, 0             // 4
        mov     $LOOPS, %edi            // 1
        wr      GLOBAL_CTRL, 3          // 4
1:      push    word                    // 20  load, store
        addq    $1, word                // 20  load, store
        pop     %rbx                    // 20  load
        nop                             // 20
        dec     %edi                    // 20
        jnz     1b                      // 20, of which 19 taken
        stop                            // 4
        .endm

// Leaf 0AH: a version from 2 on, two counters at least, 48 bits; and EBX, whose ones say what there is not: neither cycles,
// instructions nor branches are among those.
main:   wr      GLOBAL_CTRL, 0          // 4
        xor     %r13d, %r13d            // 1
        mov     $10, %eax               // 1
        cpuid                           // 1
        cmp     $2, %al                 // 1
        adc     $0, %r12                // 1
        cmp     $2, %ah                 // 1
        adc     $0, %r12                // 1
        and     $0x23, %ebx             // 1
        add     %rbx, %r12              // 1
        shr     $16, %eax               // 1
        movzbl  %al, %eax               // 1
        expect  48                      // 3

        count_two INSTRUCTIONS, BRANCHES // 21, 6 * 20, 4
        count   0                       // 4
        expect  ALL_INSTRUCTIONS        // 3
        count   1                       // 4
        expect  LOOPS                   // 3
        count_two LOADS, STORES         // 21, 6 * 20, 4
        count   0                       // 4
        expect  LOADS_IN_ALL            // 3
        count   1                       // 4
        expect  STORES_IN_ALL           // 3
        mov     word, %rax              // 1  load
        expect  ADDED                   // 3
        mov     $text, %esi             // 1
        jmp     end                     // 1, and of its own 4 * 1 + 3 * 8 + 2 * 7: "events\n"
text:   .asciz  "events\n"

        gates
        gates_end
word:   .skip   8
