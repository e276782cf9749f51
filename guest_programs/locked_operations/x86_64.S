// Locked and implicitly locked read-modify-writes: 1,000 rounds. Each is a load and a store, CMPXCHG also when it fails.
        .globl  _start
        .type   _start, @function
_start: lea     words(%rip), %rbx       //     1
        mov     $1000, %ebp             //     1
        mov     $1, %ecx                //     1
round:  lock addq $1, (%rbx)            // 1,000  load and store
        mov     $2, %eax                // 1,000
        xchg    %rax, 8(%rbx)           // 1,000  load and store
        lock xadd %rcx, 16(%rbx)        // 1,000  load and store
        mov     $1, %ecx                // 1,000
        xor     %eax, %eax              // 1,000
        lock cmpxchg %rcx, 24(%rbx)     // 1,000  load and store: succeeds the first time only
        lock decq 32(%rbx)              // 1,000  load and store
        dec     %ebp                    // 1,000
        jnz     round                   // 1,000, of which 999 taken
        mov     (%rbx), %rdi            //     1  load
        sub     $1000, %rdi             //     1  0: counted to 1,000
        mov     $60, %eax               //     1  exit(0)
        syscall                         //     1
        .size   _start, . - _start

        .bss
        .balign 64
words:  .skip   64
        .section .note.GNU-stack, "", @progbits
