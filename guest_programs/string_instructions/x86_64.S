// String instructions, with and without REP, with counts of zero and with early exits. REP retires once; its
// iterations are what loads and stores.
        .globl  _start
        .type   _start, @function
_start: cld                             //  1
        lea     text(%rip), %rsi        //  1
        lea     copy(%rip), %rdi        //  1
        // without REP: 5 instructions, loads lods movs scas cmps 4, stores stos movs 2
        lodsb                           //  1  load
        stosb                           //  1  store
        movsb                           //  1  load and store
        scasb                           //  1  load
        cmpsb                           //  1  two accesses, one load
        // copy 100 quadwords: 100 loads, 100 stores
        lea     text(%rip), %rsi        //  1
        lea     copy(%rip), %rdi        //  1
        mov     $100, %ecx              //  1
        rep movsq                       //  1
        // fill 37 words: 37 stores
        mov     $37, %ecx               //  1
        rep stosw                       //  1
        // load 5 doublewords: 5 loads
        lea     text(%rip), %rsi        //  1
        mov     $5, %ecx                //  1
        rep lodsl                       //  1
        // counts of zero: no access
        xor     %ecx, %ecx              //  1
        rep movsb                       //  1
        rep stosb                       //  1
        repe cmpsb                      //  1
        repne scasb                     //  1
        // find 'x', which is byte 9 (of 64): 10 iterations, 10 loads
        lea     line(%rip), %rdi        //  1
        mov     $'x', %eax              //  1
        mov     $64, %ecx               //  1
        repne scasb                     //  1
        // compare two lines that first differ in byte 20: 21 iterations, 21 loads
        lea     line(%rip), %rsi        //  1
        lea     other(%rip), %rdi       //  1
        mov     $64, %ecx               //  1
        repe cmpsb                      //  1
        // to the end: 16 equal bytes: 16 loads
        lea     line(%rip), %rsi        //  1
        lea     other(%rip), %rdi       //  1
        mov     $16, %ecx               //  1
        repe cmpsb                      //  1
        // the same one again and again, in a loop: 50 * 3 stores
        mov     $50, %edx               //  1
1:      lea     copy(%rip), %rdi        // 50
        mov     $3, %ecx                // 50
        rep stosb                       // 50
        dec     %edx                    // 50
        jnz     1b                      // 50, of which 49 taken
        // two REPs back to back: 4 + 4 stores
        mov     $4, %ecx                //  1
        rep stosb                       //  1
        mov     $4, %ecx                //  1
        rep stosb                       //  1
        // backwards: 8 loads, 8 stores
        std                             //  1
        lea     text+63(%rip), %rsi     //  1
        lea     copy+63(%rip), %rdi     //  1
        mov     $8, %ecx                //  1
        rep movsb                       //  1
        cld                             //  1
        xor     %edi, %edi              //  1
        mov     $60, %eax               //  1  exit(0)
        syscall                         //  1
        .size   _start, . - _start

        .data
        .balign 4096
text:   .fill   1024, 1, 'a'
line:   .ascii  "123456789x", "0123456789", "A"
        .fill   43, 1, '-'
other:  .ascii  "123456789x", "0123456789", "B"
        .fill   43, 1, '-'
        .bss
        .balign 4096
copy:   .skip   1024
        .section .note.GNU-stack, "", @progbits
