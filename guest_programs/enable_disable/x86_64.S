// The shortest window that a program can count of itself: ENABLE, two instructions, DISABLE. It prints 3: both
// instructions and the SYSCALL that disables; the SYSCALL that enables would make it 4.
        .globl  _start
        .type   _start, @function
_start: lea     attribute(%rip), %rdi   // 1
        xor     %esi, %esi              // 1  this task
        mov     $-1, %rdx               // 1  any CPU
        mov     $-1, %r10               // 1  no group
        xor     %r8d, %r8d              // 1
        mov     $298, %eax              // 1  perf_event_open
        syscall                         // 1
        test    %rax, %rax              // 1
        js      failed                  // 1, not taken
        mov     %eax, %edi              // 1
        mov     $0x2400, %esi           // 1  PERF_EVENT_IOC_ENABLE
        xor     %edx, %edx              // 1
        mov     $16, %eax               // 1  ioctl
        syscall                         // 1
        mov     $0x2401, %esi           // 1, counted: PERF_EVENT_IOC_DISABLE
        mov     $16, %eax               // 1, counted
        syscall                         // 1, counted
        lea     value(%rip), %rsi       // 1
        mov     $8, %edx                // 1
        xor     %eax, %eax              // 1  read(fd, value, 8)
        syscall                         // 1
        cmp     $8, %rax                // 1
        jne     failed                  // 1, not taken
        mov     value(%rip), %rax       // 1  load
        call    print_decimal           // 1, + 11 + 7
        xor     %edi, %edi              // 1
        mov     $60, %eax               // 1  exit(0)
        syscall                         // 1
failed: mov     %eax, %edi              //    exit(errno)
        neg     %edi
        mov     $60, %eax
        syscall
        .size   _start, . - _start

#include "print_decimal.x86_64.inc"

        .balign 8
attribute:                              // struct perf_event_attr, PERF_ATTR_SIZE_VER0
        .long   0, 64                   // PERF_TYPE_HARDWARE, size
        .quad   1                       // PERF_COUNT_HW_INSTRUCTIONS
        .quad   0, 0, 0                 // period, sample_type, read_format
        .quad   0x61                    // disabled, exclude_kernel, exclude_hv
        .quad   0, 0                    // wakeup, bp_type; config1
        .bss
        .balign 8
value:  .skip   8
        .section .note.GNU-stack, "", @progbits
