// Two lines that are used again and again, and a scan through 1,600 lines that are used once: what should a cache keep?
        .globl  _start
        .type   _start, @function
_start: mov     $lines, %esi            //     1
        lea     128(%rsi), %rdi         //     1
        mov     $100, %ecx              //     1
round:  mov     (%rsi), %rax            //   100
        mov     64(%rsi), %rax          //   100
        mov     (%rsi), %rax            //   100
        mov     64(%rsi), %rax          //   100
        mov     $16, %edx               //   100
scan:   mov     (%rdi), %rax            // 1,600  16 * 100
        add     $64, %rdi               // 1,600
        dec     %edx                    // 1,600
        jnz     scan                    // 1,600, of which 1,500 taken
        dec     %ecx                    //   100
        jnz     round                   //   100, of which 99 taken
        xor     %edi, %edi              //     1
        mov     $60, %eax               //     1  exit(0)
        syscall                         //     1
        .size   _start, . - _start

        .bss
        .balign 4096
lines:  .skip   64 * (2 + 1600)
        .section .note.GNU-stack, "", @progbits
