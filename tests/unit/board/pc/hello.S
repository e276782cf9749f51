# What a Multiboot image is told, and what QEMU's PC says at ports.
main:   say     "magic"
        mov     magic, %eax
        call    puthex
        call    newline
        mov     information, %edi
        say     "memory, command line, modules, memory map:"
        mov     (%rdi), %eax
        and     $0x4D, %eax
        call    puthex
        call    newline
        say     "KiB below 640:"
        mov     4(%rdi), %eax
        call    puthex
        call    newline
        say     "command line: "
        mov     16(%rdi), %esi
1:      lodsb                                   # behind the image's name
        cmp     $' ', %al
        jne     1b
        call    puts
        call    newline
        say     "modules:"
        mov     20(%rdi), %eax
        call    puthex
        call    newline
        say     "the first range of memory:"
        mov     48(%rdi), %ecx
        value   4(%rcx)
        value   12(%rcx)
        mov     20(%rcx), %eax
        call    puthex
        call    newline
        mov     $0x510, %edx                    # fw_cfg: signature, then CPUs
        xor     %eax, %eax
        out     %ax, (%dx)
        inc     %edx
        mov     $4, %ecx
1:      in      (%dx), %al
        call    putc
        loop    1b
        dec     %edx
        mov     $5, %eax
        out     %ax, (%dx)
        inc     %edx
        in      (%dx), %al
        mov     %al, %cl
        in      (%dx), %al
        mov     %al, %ch
        movzx   %cx, %eax
        call    puthex
        say     " CPUs\n"
        mov     $21, %eax
        ret
