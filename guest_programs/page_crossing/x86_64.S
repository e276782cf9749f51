// Straight-line code over a page boundary, ten times: instructions that straddle it, and 2,000 without a branch after it.
        .globl  _start
        .type   _start, @function
_start: mov     $10, %ecx               //  1
        xor     %eax, %eax              //  1
round:  jmp     crossing                // 10
back:   dec     %ecx                    // 10
        jnz     round                   // 10, of which 9 taken
        sub     $20000, %eax            //  1  2,000 * 10
        mov     %eax, %edi              //  1  0
        mov     $60, %eax               //  1  exit(0)
        syscall                         //  1
        .size   _start, . - _start

        .balign 4096
        .skip   4096 - 4
        .type   crossing, @function
crossing:
        nop                             // 10  the last four bytes of the page: nop, and three of
        movabs  $0x1122334455667788, %rdx  // 10  these ten
        .rept   2000
        inc     %eax                    // 2,000 * 10  two bytes each
        .endr
        .fill   4096 - 7 - 4000, 1, 0x90  // the rest of the page: (4096 - 7 - 4,000) = 89 nops, * 10
        jmp     back                    // 10  the first instruction of the third page
        .size   crossing, . - crossing
        .section .note.GNU-stack, "", @progbits
