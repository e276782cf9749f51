# Two CPUs: the second is started, in real mode; then they interrupt each other, in all ways in which one may be addressed.
main:   handle  0x41, first_hears
        handle  0x42, second_hears
        handle  2, second_nmi
        call    apic_on
        apic_write 0xE0, $0xFFFFFFFF            # flat
        apic_write 0xD0, $0x01000000
        mov     $trampoline, %esi
        mov     $TRAMPOLINE, %edi
        mov     $trampoline_end - trampoline, %ecx
        rep     movsb
        apic_write 0x310, $0x01000000
        apic_write 0x300, $0x4500               # INIT
        apic_write 0x300, $0x4600 + TRAMPOLINE / 4096
        apic_write 0x300, $0x4600 + TRAMPOLINE / 4096 # once more, as the manual has it: it is ignored
1:      pause
        cmpl    $0, second_is_here
        je      1b
        say     "the second is here, with APIC id"
        mov     second_id, %eax
        call    puthex
        call    newline

        say     "physically:"
        apic_write 0x310, $0x01000000
        apic_write 0x300, $0x4042
        call    answered
        say     "logically:"
        apic_write 0x310, $0x02000000
        apic_write 0x300, $0x4842
        call    answered
        say     "all but the sender:"
        apic_write 0x300, $0xC4042
        call    answered
        say     "lowest priority, of a set of one:"
        apic_write 0x310, $0x02000000
        apic_write 0x300, $0x4942
        call    answered
        say     "all:"
        apic_write 0x300, $0x84043
        call    answered
        say     "NMI:"
        apic_write 0x310, $0x01000000
        apic_write 0x300, $0x4400
1:      pause
        cmpl    $0, nmis
        je      1b
        mov     nmis, %eax
        call    puthex
        call    newline

        say     "a locked counter:"
        movl    $1, counting
        mov     $10000, %ecx
1:      lock incl counter
        loop    1b
1:      pause
        cmpl    $2, counting
        jne     1b
        mov     counter, %eax
        call    puthex
        call    newline
        say     "time has gone back:"
        call    compare_times
1:      pause
        cmpl    $3, counting
        jne     1b
        mov     went_back, %eax
        call    puthex
        call    newline
        xor     %eax, %eax
        ret

# The second CPU has been interrupted, and interrupts back.
answered:
1:      cli
        cmpl    $0, answers
        jne     2f
        sti
        hlt
        jmp     1b
2:      sti
        movl    $0, answers
        mov     heard, %eax
        call    puthex
        jmp     newline

first_hears:
        incl    answers
        jmp     end_of_interrupt
second_hears:
        mov     APIC + 0x20, %eax
        shr     $24, %eax
        mov     %eax, heard
        call    end_of_interrupt
        apic_write 0x310, $0
        apic_write 0x300, $0x4041
        ret
both_hear:
        mov     APIC + 0x20, %eax
        shr     $24, %eax
        jnz     second_hears
        jmp     end_of_interrupt
second_nmi:
        incl    nmis
        ret

        .code16
trampoline:
        cli
        xor     %ax, %ax
        mov     %ax, %ds
        lgdtl   TRAMPOLINE + (trampoline_gdt - trampoline)
        mov     %cr0, %eax
        or      $1, %al
        mov     %eax, %cr0
        ljmpl   $CODE32, $second32
trampoline_gdt:
        .word   gdt_end - gdt - 1
        .long   gdt
trampoline_end:
        .code32
second32:
        mov     $DATA, %eax
        mov     %eax, %ds
        mov     %eax, %es
        mov     %eax, %ss
        mov     $second_stack_top, %esp
        call    enter_long_mode
        ljmp    $CODE, $second64
        .code64
second64:
        lidt    gates_pointer
        call    apic_on
        apic_write 0xE0, $0xFFFFFFFF
        apic_write 0xD0, $0x02000000
        handle  0x43, both_hear
        mov     APIC + 0x20, %eax
        shr     $24, %eax
        mov     %eax, second_id
        movl    $1, second_is_here
1:      sti
        hlt
        cmpl    $0, nmis
        je      1b
        cli
1:      pause
        cmpl    $1, counting
        jne     1b
        mov     $10000, %ecx
1:      lock incl counter
        loop    1b
        movl    $2, counting
        call    compare_times
        movl    $3, counting
1:      hlt
        jmp     1b

# Behind a lock, so that each time is read after the other CPU's, which has been left in `last_time`.
compare_times:
        mov     $10000, %edi
1:      lock btsl $0, time_lock
        jc      1b
        lfence
        rdtsc
        shl     $32, %rdx
        or      %rdx, %rax
        xchg    %rax, last_time
        cmp     last_time, %rax
        jbe     2f
        incl    went_back
2:      movl    $0, time_lock
        dec     %edi
        jnz     1b
        ret

        .data
second_is_here: .long 0
second_id: .long 0
answers: .long  0
heard:  .long   0
nmis:   .long   0
counting: .long 0
counter: .long  0
time_lock: .long 0
went_back: .long 0
last_time: .quad 0
        .bss
        .skip   4096
second_stack_top:
        .text
