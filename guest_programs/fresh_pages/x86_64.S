// Touches pages for the first time in the middle of a block: the instruction faults, and then retires once.
        .globl  _start
        .type   _start, @function
_start: lea     pages(%rip), %rbx       //  1
        mov     $32, %ecx               //  1
        xor     %eax, %eax              //  1
round:  inc     %eax                    // 32
        mov     %rax, (%rbx)            // 32  store to a fresh page
        inc     %eax                    // 32
        incq    4096(%rbx)              // 32  load and store: faults once (or twice), retires once
        inc     %eax                    // 32
        mov     %rax, 1(%rbx)           // 32  store, to a page that is there by now
        add     $8192, %rbx             // 32
        dec     %ecx                    // 32
        jnz     round                   // 32, of which 31 taken
        // One store over two fresh pages: it faults twice.
        mov     %rax, 4092(%rbx)        //  1  store
        // A string over fresh pages: faults between iterations.
        lea     8192(%rbx), %rdi        //  1
        mov     $1536, %ecx             //  1  three pages of quadwords
        rep stosq                       //  1  1,536 stores
        // Fresh stack, 64 KiB further down.
        lea     -65536(%rsp), %rsp      //  1
        push    %rax                    //  1  store
        pop     %rdx                    //  1  load
        // Memory that mmap gives.
        xor     %edi, %edi              //  1  mmap(NULL, 0x4000, READ | WRITE, PRIVATE | ANONYMOUS, -1, 0)
        mov     $0x4000, %esi           //  1
        mov     $3, %edx                //  1
        mov     $0x22, %r10d            //  1
        mov     $-1, %r8                //  1
        xor     %r9d, %r9d              //  1
        mov     $9, %eax                //  1
        syscall                         //  1
        mov     0x1000(%rax), %rdi      //  1  load
        mov     %rdi, 0x1000(%rax)      //  1  store: reading mapped a page that may be the shared zero page
        mov     %rdi, 0x3ff8(%rax)      //  1  store
        mov     $60, %eax               //  1  exit(0)
        syscall                         //  1
        .size   _start, . - _start

        .bss
        .balign 4096
pages:  .skip   4096 * 72
        .section .note.GNU-stack, "", @progbits
