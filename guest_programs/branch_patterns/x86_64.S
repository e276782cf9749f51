// Every form of branch, in patterns with known outcomes. ecx runs from 1,000 down to 1.
        .globl  _start
        .type   _start, @function
_start: mov     $1000, %ecx             //     1
        lea     odd(%rip), %r9          //     1
        lea     even(%rip), %r10        //     1
        mov     %r9, target(%rip)       //     1  store
round:  test    $1, %cl                 // 1,000
        jnz     1f                      // 1,000, taken when odd: 500
        nop                             //   500
1:      test    $2, %cl                 // 1,000
        jz      2f                      // 1,000, taken when bit 1 is clear: 500
        nop                             //   500
2:      jrcxz   3f                      // 1,000, never taken
        cmp     $750, %ecx              // 1,000
        ja      3f                      // 1,000, taken for 751 to 1,000: 250
        nop                             //   750
3:      mov     %r9, %r11               // 1,000
        test    $1, %cl                 // 1,000
        cmovz   %r10, %r11              // 1,000  no branch
        jmp     *%r11                   // 1,000
odd:    jmp     4f                      //   500
even:   nop                             //   500
4:      loop    round                   // 1,000, of which 999 taken: LOOP is conditional
        lea     5f(%rip), %rax          //     1
        mov     %rax, target(%rip)      //     1  store
        jmp     *target(%rip)           //     1  a load and a branch
5:      lea     6f(%rip), %rax          //     1
        push    %rax                    //     1  store
        ret                             //     1  load
6:      xor     %edi, %edi              //     1
        mov     $60, %eax               //     1  exit(0)
        syscall                         //     1
        .size   _start, . - _start
        .bss
        .balign 8
target: .skip 8
        .section .note.GNU-stack, "", @progbits
