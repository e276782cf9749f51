// Entry of the C programs: ends the frame chain, calls main(argc, argv), exits with what it returns; and system calls.
        .globl  _start
        .type   _start, %function
_start: mov     x29, #0
        mov     x30, #0
        ldr     x0, [sp]
        add     x1, sp, #8
        bl      main
        mov     x8, #93
        svc     #0
        .size   _start, . - _start

        .globl  write_bytes             // long write_bytes(int fd, const void *bytes, unsigned long size)
        .type   write_bytes, %function
write_bytes:
        mov     x8, #64
        svc     #0
        ret
        .size   write_bytes, . - write_bytes

        .globl  exit_program            // void exit_program(int status)
        .type   exit_program, %function
exit_program:
        mov     x8, #93
        svc     #0
        .size   exit_program, . - exit_program
