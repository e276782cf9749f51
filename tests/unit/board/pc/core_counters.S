
# AMD's core counters: what they count at both levels, and their interrupt through the local APIC, which does not mask it.
        .set    CONTROL, 0xC0010200
        .set    COUNTER, 0xC0010201
        .set    OLD_CONTROL, 0xC0010000
        .set    OLD_COUNTER, 0xC0010004
        .set    STATUS, 0xC0000300
        .set    GLOBAL, 0xC0000301
        .set    CLEAR, 0xC0000302
        .set    DEBUG, 0x1D9
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
        handle  0x80, called
        movb    $0xEE, gates + 16 * 0x80 + 5
        call    apic_on
        say     "PerfMonV2:"
        mov     $0x80000022, %eax
        cpuid
        push    %rbx
        call    puthex
        pop     %rax
        call    puthex
        mov     $0x80000000, %eax
        cpuid
        call    puthex
        call    newline

        set     GLOBAL, 0
        set     CONTROL, 0x5300C0               # instructions retired, at both levels, with interrupt
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
        get     OLD_COUNTER
        call    puthex
        call    newline

        say     "interrupts behind:"
        apic_write LVT_PMC, $0x400              # NMI
        set     COUNTER, -5, 0xFFFF
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
        mov     APIC + LVT_PMC, %eax            # not masked
        call    puthex
        get     STATUS
        call    puthex
        set     CLEAR, 1
        get     STATUS
        call    puthex
        call    newline

        say     "again, by the old numbers, the status as it was:"
        set     0xC0000303, 1
        set     OLD_CONTROL, 0x5300C0
        set     OLD_COUNTER, -3, 0xFFFF
        set     GLOBAL, 1
        nop                                     # 1
        nop                                     # 1
        nop                                     # 1, and wraps
2:      nop
        set     GLOBAL, 0
        mov     where, %rax
        sub     $2b, %rax
        call    puthex
        get     STATUS
        call    puthex
        set     CLEAR, 1
        call    newline

        say     "frozen:"
        set     DEBUG, 0x1000                   # FPCI
        set     COUNTER, -2, 0xFFFF
        set     GLOBAL, 1
        nop                                     # 1
        nop                                     # 1, wraps, and all stand still
2:      nop
        nop
        mov     where, %rax
        sub     $2b, %rax
        call    puthex
        get     STATUS
        call    puthex
        get     COUNTER
        call    puthex
        mov     $CLEAR, %ecx
        mov     $1, %eax
        mov     $0x08000000, %edx
        wrmsr                                   # not itself
        nop                                     # 1
        xor     %ecx, %ecx                      # 1
        rdpmc                                   # reads those two
        shl     $32, %rdx
        or      %rdx, %rax
        call    puthex
        set     GLOBAL, 0
        set     DEBUG, 0
        call    newline

        say     "in privilege 3 alone:"
        set     CONTROL, 0x4100C0               # OsUserMode 1, En
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
        say     "the status is not written:"
        handle  13, refused
        set     STATUS, 0
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
