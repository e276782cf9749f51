// Counts down 100 calls deep, and calls a leaf through a register at the bottom. Frames are linked, so that a sample at
// the bottom has a call chain of 102 entries: leaf, 101 x descend, _start.
        .globl  _start
        .type   _start, @function
_start: xor     %ebp, %ebp              //   1  end of the chain
        mov     $100, %edi              //   1
        call    descend                 //   1  store
        xor     %edi, %edi              //   1
        mov     $60, %eax               //   1  exit(0)
        syscall                         //   1
        .size   _start, . - _start

        .type   descend, @function
descend:                                // called 101 times, with edi from 100 to 0
        push    %rbp                    // 101  store
        mov     %rsp, %rbp              // 101
        test    %edi, %edi              // 101
        jz      1f                      // 101, of which 1 taken
        dec     %edi                    // 100
        call    descend                 // 100  store
        jmp     2f                      // 100
1:      lea     leaf(%rip), %rax        //   1
        call    *%rax                   //   1  store
2:      pop     %rbp                    // 101  load
        ret                             // 101  load
        .size   descend, . - descend

        .type   leaf, @function
leaf:   push    %rbp                    //   1  store
        mov     %rsp, %rbp              //   1
        pop     %rbp                    //   1  load
        ret                             //   1  load
        .size   leaf, . - leaf
        .section .note.GNU-stack, "", @progbits
