// Entry of the C programs: ends the frame chain, calls main(argc, argv), exits with what it returns; and system calls.
        .globl  _start
        .type   _start, @function
_start: xor     %ebp, %ebp
        mov     (%rsp), %rdi
        lea     8(%rsp), %rsi
        and     $-16, %rsp
        call    main
        mov     %eax, %edi
        mov     $60, %eax
        syscall
        .size   _start, . - _start

        .globl  write_bytes             // long write_bytes(int fd, const void *bytes, unsigned long size)
        .type   write_bytes, @function
write_bytes:
        mov     $1, %eax
        syscall
        ret
        .size   write_bytes, . - write_bytes

        .globl  exit_program            // void exit_program(int status)
        .type   exit_program, @function
exit_program:
        mov     $60, %eax
        syscall
        .size   exit_program, . - exit_program
        .data                           // bytes in the file, so that .bss lies behind .text there, too: perf takes
        .quad   0                       // symbols by their file offset, and would find those of .bss in the code
        .section .note.GNU-stack, "", @progbits
