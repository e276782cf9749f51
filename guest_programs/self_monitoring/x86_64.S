// Opens an instruction counter on itself, counts one call of instructions_million between ENABLE and DISABLE, and prints
// what it reads: 1,000,012. The SYSCALL that enables is not counted, the one that disables is.
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
        mov     %eax, %ebx              // 1
        mov     %ebx, %edi              // 1
        mov     $0x2403, %esi           // 1  PERF_EVENT_IOC_RESET
        xor     %edx, %edx              // 1
        call    ioctl                   // 1, + 5
        mov     %ebx, %edi              // 1
        mov     $0x2400, %esi           // 1  PERF_EVENT_IOC_ENABLE
        xor     %edx, %edx              // 1
        call    ioctl                   // 1, + 5: the last three are counted:                3
        call    instructions_million    // 1 + 1,000,002, counted:                    1,000,003
        mov     %ebx, %edi              // 1, counted
        mov     $0x2401, %esi           // 1, counted: PERF_EVENT_IOC_DISABLE
        xor     %edx, %edx              // 1, counted
        call    ioctl                   // 1, counted: four                                   4
                                        // + 5, the first two are counted:                    2
                                        //                                   together  1,000,012
        mov     %ebx, %edi              // 1
        lea     value(%rip), %rsi       // 1
        mov     $8, %edx                // 1
        xor     %eax, %eax              // 1  read(fd, value, 8)
        syscall                         // 1
        cmp     $8, %rax                // 1
        jne     failed                  // 1, not taken
        mov     value(%rip), %rax       // 1  load
        call    print_decimal           // 1, + 11 + 7 * 7
        xor     %edi, %edi              // 1
        mov     $60, %eax               // 1  exit(0)
        syscall                         // 1
failed: mov     %eax, %edi              //    exit(errno)
        neg     %edi
        mov     $60, %eax
        syscall
        .size   _start, . - _start

        .type   ioctl, @function
ioctl:  mov     $16, %eax               // 5 together
        syscall                         // what it does to a counter happens after it has retired ...
        cmp     $-4095, %rax            // ... and counting starts here
        jae     failed                  //    not taken
        ret
        .size   ioctl, . - ioctl

#include "instructions_million.x86_64.inc"
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
