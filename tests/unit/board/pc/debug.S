# Debug registers. Each exception says DR6's low bits and its BS and BD, and how far behind `start` RIP is.

        .macro  break number, address, kind     # kind: LEN and R/W, as DR7 has them
        mov     $\address, %eax
        mov     %rax, %dr\number
        mov     %dr7, %rax
        and     $~(0xF << (16 + 4 * \number)) & 0xFFFFFFFF, %eax
        or      $(\kind << (16 + 4 * \number)) | (2 << (2 * \number)), %eax
        mov     %rax, %dr7
        .endm

        .macro  clear
        mov     $0x400, %eax
        mov     %rax, %dr7
        .endm

        .macro  from place
        movl    $\place, start
        .endm

        .set    EXECUTE, 0
        .set    WRITE_1, 1
        .set    WRITE_2, 5
        .set    WRITE_4, 13
        .set    WRITE_8, 9
        .set    BOTH_4, 15
        .set    watched, bytes + 4
        .set    last, bytes + 6
        .set    before_stack, other_stack - 8
        .set    below_stack, other_stack - 16

main:   handle  1, debug
        say     "stored, loaded\n"
        break   0, watched, WRITE_4
        from    1f
1:      movl    $1, bytes + 4
        mov     bytes + 4, %ecx                 # no store
        movb    $1, bytes + 3                   # beside it
        movb    $1, bytes + 7
        movq    $1, bytes + 1                   # overlaps
        movl    $1, bytes + 8
        call    line
        break   0, watched, BOTH_4
        from    1f
1:      mov     bytes + 4, %ecx
        add     %ecx, bytes + 6
        movzbl  bytes + 7, %ecx
        movq    %xmm0, bytes
        movups  %xmm0, bytes - 12
        movups  bytes - 10, %xmm0
        bt      %ecx, bytes - 4
        cmpl    $0, bytes + 8
        call    line
        clear
        say     "two at once\n"
        break   1, last, WRITE_1
        break   2, last, WRITE_2
        from    1f
1:      movw    $1, bytes + 6
        movb    $1, bytes + 7
        clear
        call    line
        say     "the stack\n"
        mov     $other_stack, %ecx
        break   0, before_stack, WRITE_8
        break   3, below_stack, BOTH_4
        from    1f
        xchg    %rcx, %rsp
1:      push    %rax
        call    2f
        nop
2:      pop     %rax
        push    $5
        popq    bytes
        enter   $8, $0
        leave
        xchg    %rcx, %rsp
        clear
        call    line
        say     "strings\n"
        break   0, watched, WRITE_4
        from    1f
        mov     $bytes, %edi
        mov     $12, %ecx
        xor     %eax, %eax
1:      rep     stosb
        mov     $bytes, %edi
        mov     $other, %esi
        mov     $4, %ecx
        rep     movsl
        mov     $bytes, %edi
        xor     %ecx, %ecx
        rep     stosl
        mov     %edi, %ecx
        clear
        call    line
        say     "instructions\n"
        break   0, 2f, EXECUTE
        break   1, 3f, EXECUTE
        from    1f
        mov     $3, %ecx
1:      nop
2:      dec     %ecx
        nop
3:      jnz     1b
        clear
        call    line
        say     "a trap and a step\n"
        break   0, watched, WRITE_4
        from    1f
        movl    $2, steps
        pushf
        orq     $0x100, (%rsp)
        popf
1:      movl    $1, bytes + 4
        nop
        nop
        clear
        call    line
        say     "a fault, and no trap\n"
        handle  6, undefined
        break   0, watched, WRITE_4
        from    1f
1:      ud2
        clear
        call    line
        say     "debug registers are guarded\n"
        mov     $0x2400, %eax
        mov     %rax, %dr7
        from    1f
1:      mov     %dr0, %rcx
        mov     %dr0, %rcx
        call    line
        xor     %eax, %eax
        ret

line:   call    newline
        ret

undefined:
        addq    $2, 16(%rbx)
        ret

debug:  mov     %dr6, %rax
        and     $0x600F, %eax
        call    puthex
        mov     16(%rbx), %rax
        mov     start, %ecx
        sub     %rcx, %rax
        call    puthex
        mov     $0xFFFF0FF0, %eax
        mov     %rax, %dr6
        orq     $0x10000, 32(%rbx)              # RF: processors set it where the instruction has yet to execute
        cmpl    $0, steps
        je      1f
        decl    steps
        jne     1f
        andq    $~0x100, 32(%rbx)               # TF
1:      ret

        .data
        .balign 16
        .skip   16
bytes:  .skip   32
other:  .skip   32
        .skip   64
other_stack:
        .skip   64
start:  .long   0
steps:  .long   0
