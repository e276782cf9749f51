# A breakpoint exception, which is handled; then a page fault without a table of gates, and so a triple fault.
main:   handle  3, back
        int3
        andq    $~1, tables + 0x2000 + 8 * 32   # 64 MiB: absent
        mov     %cr3, %rax
        mov     %rax, %cr3
        lidt    nowhere
        mov     $last, %eax
        call    puthex                          # where it dies
last:   mov     0x4000010, %eax

back:   ret

nowhere: .word  0
        .quad   0
