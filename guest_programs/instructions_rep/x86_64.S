// REP STOSB a thousand times: each retires once, however many bytes it stores. 6,007 instructions with the return.
        .globl  _start
        .type   _start, @function
_start: call    instructions_rep        //     1 (and what it does); one store
        xor     %edi, %edi              //     1
        mov     $60, %eax               //     1  exit(0)
        syscall                         //     1
        .size   _start, . - _start

        .type   instructions_rep, @function
instructions_rep:
        cld                             //     1
        lea     buffer(%rip), %rsi      //     1
        mov     $16384, %r8d            //     1
        mov     $1000, %edx             //     1
        xor     %eax, %eax              //     1
1:      mov     %rsi, %rdi              // 1,000
        mov     %r8, %rcx               // 1,000
        rep stosb                       // 1,000  16,384 stores each
        inc     %eax                    // 1,000
        dec     %edx                    // 1,000
        jnz     1b                      // 1,000, of which 999 taken
        xor     %eax, %eax              //     1
        ret                             //     1  load
        .size   instructions_rep, . - instructions_rep

        .bss
        .balign 4096
buffer: .skip 16384
        .section .note.GNU-stack, "", @progbits
