# The PMU: what it counts at both levels, and its interrupt through the local APIC, right behind the instruction.
        .set    SELECT, 0x186
        .set    COUNTER, 0xC1
        .set    GLOBAL, 0x38F
        .set    STATUS, 0x38E
        .set    CLEAR, 0x390
        .set    FIXED_CONTROL, 0x38D
        .set    FIXED, 0x309
        .set    LVT_PMC, 0x340

        .macro  set msr, low, high=0            # clobbers RAX, RCX, RDX
        mov     $\msr, %ecx
        mov     $\low, %eax
        mov     $\high, %edx
        wrmsr
        .endm
        .macro  get msr                         # into RAX
        mov     $\msr, %ecx
        rdmsr
        shl     $32, %rdx
        or      %rdx, %rax
        .endm

main:   handle  2, interrupted
        handle  0x51, interrupted
        handle  0x80, called
        movb    $0xEE, gates + 16 * 0x80 + 5
        call    apic_on
        set     GLOBAL, 0
        set     SELECT, 0x5300C0                # instructions retired, at both levels, with interrupt
        set     COUNTER, 0
        say     "counted:"
        set     GLOBAL, 1                       # not itself
        nop                                     # 1
        nop                                     # 1
        xor     %eax, %eax                      # 1
        wrmsr                                   # 1, which stops it
        xor     %ecx, %ecx
        rdpmc
        call    puthex
        get     COUNTER
        call    puthex
        call    newline

        say     "interrupts behind:"
        apic_write LVT_PMC, $0x400              # NMI
        set     COUNTER, -5
        mov     $APIC + 0x20, %edi
        set     GLOBAL, 1
1:      nop                                     # 1
        nop                                     # 1
        nop                                     # 1
        nop                                     # 1
        mov     (%rdi), %ecx                    # 1, and wraps
2:      nop
        nop
        set     GLOBAL, 0
        mov     where, %rax
        sub     $2b, %rax
        call    puthex
        mov     APIC + LVT_PMC, %eax            # masked
        call    puthex
        get     STATUS
        call    puthex
        set     CLEAR, 1
        get     STATUS
        call    puthex
        call    newline

        say     "by a fixed counter, with a vector:"
        apic_write LVT_PMC, $0x51
        set     FIXED_CONTROL, 0xB              # both levels, and interrupt
        set     FIXED, -3, 0xFFFF
        sti
        set     GLOBAL, 0, 1
        nop                                     # 1
        nop                                     # 1
        nop                                     # 1, and wraps
2:      nop
        set     GLOBAL, 0
        cli
        mov     where, %rax
        sub     $2b, %rax
        call    puthex
        get     STATUS
        call    puthex
        set     CLEAR, 0, 1
        call    newline

        say     "in privilege 3 alone:"
        set     FIXED_CONTROL, 0
        set     SELECT, 0x4100C0                # USR, EN
        set     COUNTER, 0
        set     GLOBAL, 1
        push    $USER_DATA
        push    $user_stack_top
        push    $0x202
        push    $USER_CODE
        push    $user
        iretq
user:   nop                                     # 1
        nop                                     # 1
        int     $0x80                           # 1
called: set     GLOBAL, 0
        get     COUNTER
        call    puthex
        call    newline
        say     "a reserved bit:"
        handle  13, refused
        set     GLOBAL, 0, 0x80000000
1:      xor     %edi, %edi
        jmp     exit

refused:
        value   (%rbx)
        value   8(%rbx)
        call    newline
        xor     %edi, %edi
        jmp     exit

interrupted:
        mov     16(%rbx), %rax
        mov     %rax, where
        cmpq    $2, (%rbx)
        jne     end_of_interrupt
        ret
        .data
where:  .quad   0
        .bss
        .skip   4096
user_stack_top:
        .text
