// Reads its own counter in user mode: opens instructions, maps the event's page, and executes RDPMC before and after a
// loop. The difference is printed: 2,002. (The page's index may name a fixed counter: bit 30 stands in it then.)
//
// A read sees the instructions before it, not itself: the first RDPMC, and all between the two, make the difference.
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
        mov     %rax, %r8               // 1  mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0)
        xor     %edi, %edi              // 1
        mov     $4096, %esi             // 1
        mov     $1, %edx                // 1
        mov     $1, %r10d               // 1
        xor     %r9d, %r9d              // 1
        mov     $9, %eax                // 1
        syscall                         // 1
        cmp     $-4095, %rax            // 1
        jae     failed                  // 1, not taken
        mov     12(%rax), %ecx          // 1  load: perf_event_mmap_page.index
        mov     $-61, %eax              // 1
        test    %ecx, %ecx              // 1
        jz      failed                  // 1, not taken: exit(ENODATA), no user access
        dec     %ecx                    // 1
        rdpmc                           // 1    counted from here
        mov     %eax, %esi              // 1    counted
        mov     $999, %edi              // 1    counted
1:      dec     %edi                    // 999  counted
        jnz     1b                      // 999  counted, of which 998 taken
        nop                             // 1    counted: 1 + 2 + 1,998 + 1 = 2,002
        rdpmc                           // 1
        sub     %esi, %eax              // 1  (the low halves are enough)
        call    print_decimal           // 1, + 11 + 7 * 4
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
        .quad   0x60                    // exclude_kernel, exclude_hv
        .quad   0, 0                    // wakeup, bp_type; config1
        .section .note.GNU-stack, "", @progbits
