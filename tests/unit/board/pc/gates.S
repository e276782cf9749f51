# Exceptions and software interrupts: vector, error code, where RIP is, and CR2; each handler goes on behind.
        .macro  provoke what:vararg
        movl    $8f - 7f, length
        movl    $7f, start
7:      \what
8:
        .endm

main:   handle  0, shown
        handle  1, step
        handle  3, trap
        handle  4, trap
        handle  6, shown
        handle  13, shown
        handle  14, shown
        handle  0x40, trap
        handle  2, nmi
        say     "divide\n"
        xor     %ecx, %ecx
        provoke div %ecx
        say     "int3\n"
        provoke int3
        say     "undefined\n"
        provoke ud2
        say     "int 40\n"
        provoke int $0x40
        say     "general protection: an address, a selector\n"
        movabs  $0x8000000000000000, %rcx
        provoke mov (%rcx), %eax
        mov     $0x1234, %ecx
        provoke mov %ecx, %es
        say     "page faults: absent, read and written; read-only; not to be executed\n"
        andq    $~1, tables + 0x2000 + 8 * 32   # 64 MiB: absent
        andq    $~2, tables + 0x2000 + 8 * 33   # 66 MiB: read-only
        btsq    $63, tables + 0x2000 + 8 * 34   # 68 MiB: not executable
        movb    $0xC3, 0x4400123                # RET
        mov     %cr3, %rax
        mov     %rax, %cr3
        provoke mov 0x4000010, %eax
        provoke movb $1, 0x4000020
        provoke orl $1, 0x4200030
        mov     0x4200030, %eax                 # which may be read
        mov     $0x4400123, %ecx
        provoke call *%rcx
        say     "single step\n"
        pushf
        orq     $0x100, (%rsp)
        movl    $7f, start
        popf                                    # TF
7:      nop
        nop
        nop
        nop                                     # by then it is off
        call    newline
        say     "NMI\n"
        call    apic_on
        apic_write 0x310, $0
        apic_write 0x300, $0x44400              # to itself
        nop
        say     "by another stack\n"
        movw    $1, gates + 2 * 16 + 4          # IST1
        movb    $0x8E, gates + 2 * 16 + 5
        apic_write 0x300, $0x44400
        nop
        xor     %eax, %eax
        ret

# A fault: RIP is on the instruction
shown:  push    %rsi
        value   (%rbx)
        value   8(%rbx)
        mov     16(%rbx), %rax
        mov     (%rbx), %rcx
        cmp     $14, %ecx
        jne     1f
        testb   $0x10, 8(%rbx)                  # of a fetch: what has called is known
        jnz     2f
1:      mov     start, %ecx
        sub     %rcx, %rax
        call    puthex
        mov     length, %eax
        add     start, %eax
        mov     %rax, 16(%rbx)
        jmp     3f
2:      mov     40(%rbx), %rcx                  # RSP: the return address
        call    puthex
        mov     (%rcx), %rax
        mov     %rax, 16(%rbx)
        addq    $8, 40(%rbx)
3:      mov     (%rbx), %rax
        cmp     $14, %eax
        jne     4f
        value   %cr2
4:      call    newline
        pop     %rsi
        ret

# RIP is behind it
trap:   value   (%rbx)
        value   8(%rbx)
        mov     length, %ecx
        mov     16(%rbx), %rax
        mov     start, %edx
        sub     %rdx, %rax
        cmp     %rcx, %rax
        sete    %al
        movzx   %al, %eax
        call    puthex
        call    newline
        ret

# Behind the first, the second, the third instruction, which is the last that is stepped
step:   value   (%rbx)
        mov     16(%rbx), %rax
        mov     start, %ecx
        sub     %rcx, %rax
        call    puthex
        cmp     $3, %eax
        jne     1f
        andq    $~0x100, 32(%rbx)               # TF
1:      ret

nmi:    value   (%rbx)
        cmp     $interrupt_stack_top, %rbx      # on which stack
        seta    %al
        movzx   %al, %eax
        call    puthex
        call    newline
        ret

        .data
start:  .long   0
length: .long   0
        .text
