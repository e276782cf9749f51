# What every image here begins with: a Multiboot header with addresses, 64-bit mode, gates for all vectors, COM1, exit.
# Then its own `main`, in 64-bit mode at privilege 0, which ends with the exit code in EAX.
#
# Paging: 4 GiB are mapped to where they are, by pages of 2 MiB that privilege 3 may use; `tables` is the PML4.

        .set    COM1, 0x3F8
        .set    APIC, 0xFEE00000
        .set    IO_APIC, 0xFEC00000
        .set    CODE, 0x08
        .set    DATA, 0x10
        .set    USER_DATA, 0x1B                 # 0x18, RPL 3
        .set    USER_CODE, 0x23
        .set    TSS, 0x28
        .set    CODE32, 0x38
        .set    TRAMPOLINE, 0x8000              # where other CPUs start

        .text
        .code32
        .globl  _start
_start: jmp     begin
        .balign 4
header: .long   0x1BADB002, 0x10003, -(0x1BADB002 + 0x10003)
        .long   header, _start, loaded_end, bss_end, begin

begin:  mov     $stack_top, %esp
        mov     %eax, magic
        mov     %ebx, information
        mov     $tables + 0x1000 + 7, %eax      # present, writable, for privilege 3
        mov     %eax, tables
        mov     $tables + 0x2000 + 7, %eax
        mov     $tables + 0x1000, %edi
        mov     $4, %ecx
1:      mov     %eax, (%edi)
        add     $0x1000, %eax
        add     $8, %edi
        loop    1b
        mov     $tables + 0x2000, %edi
        mov     $0x87, %eax                     # and large
        mov     $4 * 512, %ecx
1:      mov     %eax, (%edi)
        add     $0x200000, %eax
        add     $8, %edi
        loop    1b
        call    enter_long_mode
        ljmp    $CODE, $begin64

enter_long_mode:
        lgdt    gdt_pointer
        mov     %cr4, %eax
        or      $0x220, %eax                    # PAE, OSFXSR
        mov     %eax, %cr4
        mov     $tables, %eax
        mov     %eax, %cr3
        mov     $0xC0000080, %ecx
        rdmsr
        or      $0x901, %eax                    # LME, NXE, SCE
        wrmsr
        mov     %cr0, %eax
        or      $0x80010000, %eax               # PG, WP
        mov     %eax, %cr0
        ret

        .code64
begin64:
        mov     $DATA, %eax
        mov     %eax, %ds
        mov     %eax, %es
        mov     %eax, %ss
        mov     $gates, %edi
        mov     $stubs, %eax
        mov     $256, %ecx
1:      mov     %ax, (%rdi)
        movw    $CODE, 2(%rdi)
        movw    $0x8E00, 4(%rdi)                # an interrupt gate
        mov     %eax, %edx
        shr     $16, %edx
        mov     %dx, 6(%rdi)
        movq    $0, 8(%rdi)
        add     $STUB_BYTES, %eax
        add     $16, %rdi
        loop    1b
        lidt    gates_pointer
        mov     $task_state, %eax               # the descriptor's base
        mov     %ax, gdt + TSS + 2
        shr     $16, %eax
        mov     %al, gdt + TSS + 4
        mov     %ah, gdt + TSS + 7
        mov     $TSS, %eax
        ltr     %ax
        mov     $0xFF, %al                      # the 8259s are masked
        out     %al, $0x21
        out     %al, $0xA1
        call    main
        mov     %eax, %edi
exit:   mov     %edi, %eax                      # with EDI as its code
        mov     $0xF4, %edx
        out     %eax, (%dx)
1:      cli
        hlt
        jmp     1b

# ---- what is said

putc:   push    %rdx                            # AL
        push    %rax
        mov     $COM1 + 5, %edx
1:      in      (%dx), %al
        test    $0x20, %al
        jz      1b
        pop     %rax
        mov     $COM1, %edx
        out     %al, (%dx)
        pop     %rdx
        ret

puts:   push    %rax                            # RSI, up to a zero
        push    %rsi
1:      lodsb
        test    %al, %al
        jz      2f
        call    putc
        jmp     1b
2:      pop     %rsi
        pop     %rax
        ret

puthex: push    %rax                            # RAX, and a space before it
        push    %rbx
        push    %rcx
        mov     %rax, %rbx
        mov     $' ', %al
        call    putc
        mov     $60, %ecx
1:      mov     %rbx, %rax
        shr     %cl, %rax
        jnz     2f                              # no leading zeroes
        sub     $4, %ecx
        jg      1b
        xor     %ecx, %ecx
2:      mov     %rbx, %rax
        shr     %cl, %rax
        and     $15, %eax
        mov     digits(%rax), %al
        call    putc
        sub     $4, %ecx
        jge     2b
        pop     %rcx
        pop     %rbx
        pop     %rax
        ret

newline:
        push    %rax
        mov     $'\n', %al
        call    putc
        pop     %rax
        ret

        .macro  say text                        # clobbers RSI
        .section .rodata
9:      .asciz  "\text"
        .text
        mov     $9b, %esi
        call    puts
        .endm

        .macro  value register                  # clobbers RAX
        mov     \register, %rax
        call    puthex
        .endm

        .macro  put register, number            # WRMSR; clobbers RAX, RCX, RDX
        mov     $\register, %ecx
        mov     $(\number) & 0xFFFFFFFF, %eax
        mov     $(\number) >> 32, %edx
        wrmsr
        .endm

        .macro  handle vector, address          # clobbers RAX
        mov     $\address, %eax
        mov     %rax, handlers + 8 * \vector
        .endm

# ---- gates

# The stubs of all vectors push an error code of 0 where the CPU pushes none, and the vector. A handler finds RBX at that
# frame: vector, error code, RIP, CS, RFLAGS, RSP, SS; all registers but RBX are saved around it.
        .set    STUB_BYTES, 16
        .balign 16
stubs:  .set    vector, 0
        .rept   256
        .balign STUB_BYTES
        .if     !(vector == 8 || (vector >= 10 && vector <= 14) || vector == 17)
        push    $0
        .endif
        push    $vector
        jmp     common
        .set    vector, vector + 1
        .endr
        .balign STUB_BYTES
common: cld
        push    %rax
        push    %rbx
        push    %rcx
        push    %rdx
        push    %rsi
        push    %rdi
        push    %r8
        lea     56(%rsp), %rbx
        mov     (%rbx), %rax
        mov     handlers(, %rax, 8), %rax
        test    %rax, %rax
        jz      unexpected
        call    *%rax
        pop     %r8
        pop     %rdi
        pop     %rsi
        pop     %rdx
        pop     %rcx
        pop     %rbx
        pop     %rax
        add     $16, %rsp
        iretq

unexpected:
        say     "unexpected: vector, error code, RIP, CR2:"
        value   (%rbx)
        value   8(%rbx)
        value   16(%rbx)
        value   %cr2
        call    newline
        mov     $63, %edi
        jmp     exit

# ---- local APIC

        .macro  apic_write register, value      # clobbers RAX
        mov     $APIC + \register, %eax
        movl    \value, (%rax)
        .endm

apic_on:
        apic_write 0xF0, $0x1FF                 # enabled; spurious vector FFH
        ret

end_of_interrupt:
        apic_write 0xB0, $0
        ret

        .section .rodata
digits: .ascii  "0123456789abcdef"
        .data
        .balign 16
gdt:    .quad   0
        .quad   0x00AF9B000000FFFF              # CODE
        .quad   0x00CF93000000FFFF              # DATA
        .quad   0x00CFF3000000FFFF              # USER_DATA
        .quad   0x00AFFB000000FFFF              # USER_CODE
        .quad   0x0000890000000067, 0           # TSS
        .quad   0x00CF9B000000FFFF              # CODE32
gdt_end:
gdt_pointer:
        .word   gdt_end - gdt - 1
        .quad   gdt
gates_pointer:
        .word   256 * 16 - 1
        .quad   gates
        .balign 16
task_state:
        .long   0
        .quad   interrupt_stack_top, 0, 0, 0    # RSP0
        .quad   other_stack_top                 # IST1
        .fill   0x66 - 0x2C, 1, 0
        .word   0x68                            # privilege 3 may use no port
magic:  .long   0
information:
        .long   0
        .bss
        .balign 4096
tables: .skip   6 * 4096
        .skip   4096
stack_top:
        .skip   4096
interrupt_stack_top:
        .skip   4096
other_stack_top:
gates:  .skip   256 * 16
handlers:
        .skip   256 * 8
        .text
