// A Multiboot image, which stays in protected mode, or goes on to long mode (LONG): paging by PAE's tables, gates for all
// vectors, ring 3, other CPUs; then C. What the compiler gives is one of both, from the same sources.
#ifdef __x86_64__
#define LONG 1
#define GATE_BYTES 16
#define DIRECTORY 7
#define TOP_TABLE level4
#define FEATURES 0x900
#define CODE_DESCRIPTOR 0x00af9b000000ffff
#else
#define LONG 0
#define GATE_BYTES 8
#define DIRECTORY 1
#define TOP_TABLE pointers
#define FEATURES 0x800
#define CODE_DESCRIPTOR 0x00cf9b000000ffff
#endif
        .set    CODE, 0x08
        .set    DATA, 0x10
        .set    USER_DATA, 0x1b
        .set    USER_CODE, 0x23
        .set    TSS, 0x28
        .set    CODE32, 0x38
        .set    TRAMPOLINE, 0x8000
        .set    STACK_BYTES, 8192

        .section .text.start, "ax"
        .code32
        .globl  _start
header: .long   0x1badb002, 2, -(0x1badb002 + 2) // it wants to know of memory
_start: cli
        mov     $first_stack_top, %esp
        mov     %eax, boot_magic
        mov     %ebx, boot_information
        // 4 GiB are where they are, in pages of 2 MiB which ring 3 may use, too
        xor     %eax, %eax
        mov     $directories, %edi
1:      mov     %eax, %edx
        or      $0x87, %edx                     // present, writable, of ring 3, large
        mov     %edx, (%edi)
        movl    $0, 4(%edi)
        add     $8, %edi
        add     $0x200000, %eax
        jnc     1b
        // the first pieces at 3 GiB are the one at 2 MiB in other ways: of ring 0, read only, not executed, not there
        mov     $directories + 3 * 4096, %edi
        movl    $0x200083, (%edi)
        movl    $0x200085, 8(%edi)
        movl    $0x200087, 16(%edi)
        movl    $0x80000000, 20(%edi)
        movl    $0, 24(%edi)
        mov     $pointers, %edi
        mov     $directories + DIRECTORY, %eax
        .rept   4
        mov     %eax, (%edi)
        add     $4096, %eax
        add     $8, %edi
        .endr
        movl    $pointers + 7, level4
        call    paging
        ljmp    $CODE, $begin

paging: lgdt    gdt_pointer
        mov     $0x220, %eax                    // PAE, OSFXSR
        mov     %eax, %cr4
        mov     $TOP_TABLE, %eax
        mov     %eax, %cr3
        mov     $0xc0000080, %ecx               // EFER: NXE, and LME
        rdmsr
        or      $FEATURES, %eax
        wrmsr
        mov     %cr0, %eax
        and     $~0x60000000, %eax              // caches are on
        or      $0x80010001, %eax               // PG, WP, PE
        mov     %eax, %cr0
        ret

#if LONG
        .code64
#endif
        .macro  segments
        mov     $USER_DATA, %eax                // which ring 0 may use as well, and IRET leaves alone
        mov     %eax, %ds
        mov     %eax, %es
        mov     $DATA, %eax
        mov     %eax, %ss
        lidt    gates_pointer
        .endm
begin:  segments
        mov     $task_state, %eax
        mov     %ax, gdt + TSS + 2
        shr     $16, %eax
        mov     %al, gdt + TSS + 4
        mov     %ah, gdt + TSS + 7
        mov     $TSS, %eax
        ltr     %ax
        call    main
1:      hlt
        jmp     1b

// ---- exceptions and interrupts: vector and error code are pushed, trap() hears of it
        .text
        .set    STUB_BYTES, 16
        .balign 16
        .globl  stubs
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
#if LONG
        .irp    register, rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11, r12
        push    %\register
        .endr
        lea     80(%rsp), %rdi
        mov     %rsp, %r12
        and     $~15, %rsp
        call    trap
        mov     %r12, %rsp
#else
        pusha
        lea     32(%esp), %eax
        push    %eax
        call    trap
        add     $4, %esp
#endif
        test    %eax, %eax
        jnz     tried
#if LONG
        .irp    register, r12, r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax
        pop     %\register
        .endr
        add     $16, %rsp
        iretq
#else
        popa
        add     $8, %esp
        iret
#endif

// try(code, is_user, argument): to where an exception ends it. The argument is in the accumulator there.
        .globl  try
try:
#if LONG
        .irp    register, rbx, rbp, r12, r13, r14, r15
        push    %\register
        .endr
        mov     %rsp, trying
        mov     %rdx, %rax
        test    %esi, %esi
        jz      1f
        push    $USER_DATA
        push    $user_stack_top
        push    $2
        push    $USER_CODE
        push    %rdi
        iretq
1:      jmp     *%rdi
tried:  mov     trying, %rsp
        movq    $0, trying
        .irp    register, r15, r14, r13, r12, rbp, rbx
        pop     %\register
        .endr
        ret
#else
        push    %ebx
        push    %ebp
        push    %esi
        push    %edi
        mov     %esp, trying
        mov     20(%esp), %edi
        mov     28(%esp), %eax
        cmpl    $0, 24(%esp)
        je      1f
        push    $USER_DATA
        push    $user_stack_top
        push    $2
        push    $USER_CODE
        push    %edi
        iret
1:      jmp     *%edi
tried:  mov     trying, %esp
        movl    $0, trying
        mov     $USER_DATA, %eax
        mov     %eax, %ds
        mov     %eax, %es
        pop     %edi
        pop     %esi
        pop     %ebp
        pop     %ebx
        ret
#endif

// ---- other CPUs begin here, in real mode
        .code16
        .globl  trampoline, trampoline_end
trampoline:
        cli
        xor     %ax, %ax
        mov     %ax, %ds
        lgdtl   TRAMPOLINE + (its_gdt - trampoline)
        mov     %cr0, %eax
        or      $1, %al
        mov     %eax, %cr0
        ljmpl   $CODE32, $protected
its_gdt:
        .word   gdt_end - gdt - 1
        .long   gdt
trampoline_end:
        .code32
protected:
        mov     $DATA, %eax
        mov     %eax, %ds
        mov     %eax, %ss
        mov     $1, %eax
        lock xadd %eax, next_cpu
        mov     %eax, %ebp
        inc     %eax
        imul    $STACK_BYTES, %eax
        lea     stacks(%eax), %esp
        call    paging
        ljmp    $CODE, $1f
#if LONG
        .code64
#endif
1:      segments
#if LONG
        mov     %ebp, %edi
#else
        push    %ebp
#endif
        call    works
2:      hlt
        jmp     2b

        .data
        .balign 16
gdt:    .quad   0
        .quad   CODE_DESCRIPTOR
        .quad   0x00cf93000000ffff              // DATA
        .quad   0x00cff3000000ffff              // USER_DATA
        .quad   CODE_DESCRIPTOR + (3 << 45)       // USER_CODE
        .quad   0x0000890000000067, 0           // TSS
        .quad   0x00cf9b000000ffff              // CODE32
gdt_end:
gdt_pointer:
        .word   gdt_end - gdt - 1
        .long   gdt, 0
gates_pointer:
        .word   256 * GATE_BYTES - 1
        .long   gates, 0
        .balign 16
task_state:
        .long   0
#if LONG
        .quad   interrupt_stack_top, 0, 0
#else
        .long   interrupt_stack_top, DATA
#endif
        .org    task_state + 0x66
        .word   0x68                            // ring 3 may use no port
        .balign 16
next_cpu:
        .long   1
        .globl  boot_magic, boot_information, trying, gates
boot_magic:
        .long   0
boot_information:
        .long   0

        .bss
        .balign 4096
level4: .skip   4096
directories:
        .skip   4 * 4096
pointers:
        .skip   4096
gates:  .skip   4096
trying: .skip   8
        .balign 16
stacks: .skip   9 * STACK_BYTES
        .skip   STACK_BYTES
first_stack_top:
        .skip   STACK_BYTES
interrupt_stack_top:
        .skip   4096
user_stack_top:
        .section .note.GNU-stack, "", @progbits
