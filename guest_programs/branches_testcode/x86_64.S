// A jump, a branch that falls through and a loop branch a round: 3,000,004 instructions with the return.
        .globl  _start
        .type   _start, @function
_start: call    branches_testcode       //       1 (and what it does); one store
        xor     %edi, %edi              //       1
        mov     $60, %eax               //       1  exit(0)
        syscall                         //       1
        .size   _start, . - _start

        .type   branches_testcode, @function
branches_testcode:
        mov     $500000, %ecx           //       1
        xor     %eax, %eax              //       1
1:      jmp     2f                      // 500,000
        nop                             //       0  jumped over
2:      inc     %eax                    // 500,000
        test    %eax, %eax              // 500,000
        jz      3f                      // 500,000, never taken: eax is at least 1
        dec     %ecx                    // 500,000
        jnz     1b                      // 500,000, of which 499,999 taken
3:      xor     %eax, %eax              //       1
        ret                             //       1  load
        .size   branches_testcode, . - branches_testcode
        .section .note.GNU-stack, "", @progbits
