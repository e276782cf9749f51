# Privilege 3 and back: a gate, SYSCALL, and what is forbidden there.
main:   handle  6, shown
        handle  13, shown
        handle  14, shown
        handle  0x80, called
        movb    $0xEE, gates + 16 * 0x80 + 5    # privilege 3 may use it
        andq    $~4, tables + 0x2000 + 8 * 32   # 64 MiB: not for privilege 3
        mov     %cr3, %rax
        mov     %rax, %cr3
        mov     $0xC0000081, %ecx               # STAR: SYSRET to 18H + 8 and + 16, of privilege 3
        xor     %eax, %eax
        mov     $0x0013 << 16 | CODE, %edx
        wrmsr
        inc     %ecx                            # LSTAR
        mov     $system_call, %eax
        xor     %edx, %edx
        wrmsr
        mov     $0xC0000084, %ecx               # SFMASK: IF
        mov     $0x200, %eax
        wrmsr
        push    $USER_DATA
        push    $user_stack_top
        push    $0x202
        push    $USER_CODE
        push    $user
        iretq

        .macro  forbidden what:vararg
        mov     $8f - 7f, %ebp
7:      \what
8:
        .endm

user:   mov     $1, %eax
        int     $0x80
        mov     $2, %eax
        syscall
        mov     %eax, %edi
        mov     $3, %eax
        int     $0x80
        forbidden cli
        forbidden hlt
        forbidden in $0x60, %al
        forbidden mov %cr0, %rax
        forbidden mov %rax, %cr3
        forbidden wrmsr
        forbidden rdmsr
        forbidden lgdt gdt_pointer
        forbidden lidt gates_pointer
        forbidden ltr %ax
        forbidden invlpg 0x4000000
        forbidden wbinvd
        forbidden int $0x41
        forbidden mov 0x4000123, %eax
        forbidden movb $1, 0x4000456
        movabs  $0xFFFF800000000000, %rcx
        forbidden mov (%rcx), %eax
        forbidden ud2
        mov     $4, %eax
        int     $0x80

# EAX says what for
called: mov     -8(%rbx), %rax                  # as it was
        cmp     $4, %eax
        je      1f
        say     "from privilege 3:"
        call    puthex
        value   24(%rbx)
        value   48(%rbx)
        mov     %cs, %eax
        call    puthex
        jmp     newline
1:      xor     %edi, %edi
        jmp     exit

shown:  push    %rsi
        value   (%rbx)
        value   8(%rbx)
        value   24(%rbx)
        mov     (%rbx), %rax
        cmp     $14, %eax
        jne     1f
        value   %cr2
1:      call    newline
        mov     %ebp, %eax
        add     %rax, 16(%rbx)
        pop     %rsi
        ret

system_call:
        mov     %rsp, user_stack
        mov     $stack_top - 2048, %esp
        push    %rcx
        push    %r11
        push    %rax
        say     "SYSCALL:"
        pop     %rax
        call    puthex
        mov     %cs, %eax
        call    puthex
        mov     %ss, %eax
        call    puthex
        pushf
        pop     %rax
        and     $0x200, %eax
        call    puthex
        value   (%rsp)                          # R11: RFLAGS
        call    newline
        mov     $5, %eax
        pop     %r11
        pop     %rcx
        mov     user_stack, %rsp
        sysretq

        .data
user_stack: .quad 0
        .bss
        .skip   4096
user_stack_top:
        .text
