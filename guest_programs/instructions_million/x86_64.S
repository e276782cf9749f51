// One call of the kernel that counts a million instructions.
        .globl  _start
        .type   _start, @function
_start: call    instructions_million    //       1 (and what it does); one store
        xor     %edi, %edi              //       1
        mov     $60, %eax               //       1  exit(0)
        syscall                         //       1
        .size   _start, . - _start

#include "instructions_million.x86_64.inc"
        .section .note.GNU-stack, "", @progbits
