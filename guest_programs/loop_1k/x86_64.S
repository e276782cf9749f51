// A loop of a thousand rounds. The number on the right is how often the instruction retires.
        .globl  _start
        .type   _start, @function
_start: mov     $1000, %ecx             //     1
1:      dec     %ecx                    // 1,000
        jnz     1b                      // 1,000, of which 999 taken
        mov     $60, %eax               //     1  exit(0)
        xor     %edi, %edi              //     1
        syscall                         //     1
        .size   _start, . - _start
        .section .note.GNU-stack, "", @progbits
