# Interrupts of timers: the local APIC's, once and again and again, and the 8254's by the 8259 and by the I/O APIC.
main:   handle  0x30, tick
        handle  0x50, apic_tick
        handle  0xFF, spurious
        call    apic_on
        apic_write 0x3E0, $0xB                  # divided by 1
        apic_write 0x320, $0x50
        say     "once:"
        apic_write 0x380, $100000
        call    wait
        mov     APIC + 0x390, %eax
        call    puthex
        call    newline
        say     "five times:"
        apic_write 0x320, $0x20050              # periodic
        apic_write 0x380, $10000000
        mov     $5, %ecx
1:      call    wait
        loop    1b
        apic_write 0x380, $0
        call    newline
        say     "masked:"
        apic_write 0x320, $0x10050
        apic_write 0x380, $1000
1:      mov     APIC + 0x390, %eax
        test    %eax, %eax
        jnz     1b
        mov     APIC + 0x220, %eax              # IRR of 20H to 3FH, 40H to 5FH
        call    puthex
        mov     APIC + 0x240, %eax
        call    puthex
        call    newline
        say     "task priority:"
        apic_write 0x80, $0x50
        apic_write 0x320, $0x50
        apic_write 0x380, $1000
1:      mov     APIC + 0x220, %eax              # it is requested ...
        test    %eax, %eax
        jz      1b
        call    puthex
        sti                                     # ... and does not come
        nop
        cli
        mov     APIC + 0x220, %eax
        call    puthex
        apic_write 0x80, $0
        call    wait
        call    newline
        say     "task priority by CR8:"
        apic_write 0x80, $0x73                  # either is the other's high bits
        value   %cr8
        mov     $5, %eax
        mov     %rax, %cr8
        mov     APIC + 0x80, %eax
        call    puthex
        apic_write 0x380, $1000
1:      mov     APIC + 0x220, %eax
        test    %eax, %eax
        jz      1b
        sti
        nop
        nop
        cli
        call    puthex
        mov     $4, %eax                        # lower than the interrupt's
        mov     %rax, %cr8
        call    wait
        xor     %eax, %eax
        mov     %rax, %cr8
        call    newline

        say     "8254 by the 8259:"
        mov     $0x11, %al                      # ICW1: with ICW4
        out     %al, $0x20
        mov     $0x30, %al
        out     %al, $0x21
        mov     $4, %al
        out     %al, $0x21
        mov     $1, %al
        out     %al, $0x21
        mov     $0xFE, %al                      # IRQ 0 alone
        out     %al, $0x21
        apic_write 0x350, $0x700                # LINT0: ExtINT
        call    three
        say     "8254 by the I/O APIC:"
        mov     $0xFF, %al
        out     %al, $0x21
        apic_write 0x350, $0x10700
        mov     $IO_APIC, %edi
        movl    $0x15, (%rdi)                   # pin 2: to CPU 0
        movl    $0, 0x10(%rdi)
        movl    $0x14, (%rdi)
        movl    $0x50, 0x10(%rdi)
        call    three
        movl    $0x10050, 0x10(%rdi)

        say     "channel 2 has come to its end:"
        in      $0x61, %al
        and     $0xFC, %al
        or      $1, %al                         # its gate
        out     %al, $0x61
        mov     $0xB0, %al                      # low, then high; mode 0
        out     %al, $0x43
        mov     $0x00, %al
        out     %al, $0x42
        mov     $0x10, %al
        out     %al, $0x42
        in      $0x61, %al
        and     $0x20, %eax
        call    puthex
1:      in      $0x61, %al
        test    $0x20, %al
        jz      1b
        and     $0x20, %eax
        call    puthex
        call    newline
        mov     $0, %eax
        ret

three:  mov     $0x34, %al                      # channel 0: low, then high; mode 2
        out     %al, $0x43
        mov     $0x00, %al
        out     %al, $0x40
        mov     $0x10, %al
        out     %al, $0x40
        mov     $3, %ecx
1:      call    wait
        loop    1b
        mov     $0x30, %al                      # mode 0, and no count: it is still
        out     %al, $0x43
        jmp     newline

wait:   movl    $0, ticks
1:      cli
        cmpl    $0, ticks
        jne     2f
        sti
        hlt
        jmp     1b
2:      ret

tick:   mov     $0x20, %al
        out     %al, $0x20
        jmp     1f
apic_tick:
        call    end_of_interrupt
1:      value   (%rbx)
        incl    ticks
        ret
spurious:
        say     " spurious"
        ret
        .data
ticks:  .long   0
        .text
