// Stores into its own block: the instruction after the store is the one that it changes. x86 sees that at once. The
// instruction adds 10, 9, ... 1; the sum is the exit status.
        .section .writable_code, "awx", @progbits
        .globl  _start
        .type   _start, @function
_start: xor     %edi, %edi              //  1
        mov     $10, %ecx               //  1
round:  nop                             // 10
        mov     %ecx, patched+2(%rip)   // 10  store
patched:
        add     $0x11223344, %edi       // 10, never as it stands here: 81 c7 and four bytes
        nop                             // 10
        dec     %ecx                    // 10
        jnz     round                   // 10, of which 9 taken
        // And a function that is rewritten between two calls of it.
        call    function                //  1  store; edi += 1
        movb    $2, function+2(%rip)    //  1  store
        call    function                //  1  store; edi += 2
        mov     $60, %eax               //  1  exit(58)
        syscall                         //  1
        .size   _start, . - _start

        .balign 16
        .type   function, @function
function:
        add     $1, %edi                //  2: 83 c7 01
        ret                             //  2  load
        .size   function, . - function
        .section .note.GNU-stack, "", @progbits
