// The shortest window that a program can count of itself: ENABLE, two instructions, DISABLE. It prints 3: both
// instructions and the SVC that disables; the SVC that enables would make it 4.
        .globl  _start
        .type   _start, %function
_start: adr     x0, attribute           // 1
        mov     x1, #0                  // 1  this task
        mov     x2, #-1                 // 1  any CPU
        mov     x3, #-1                 // 1  no group
        mov     x4, #0                  // 1
        mov     x8, #241                // 1  perf_event_open
        svc     #0                      // 1
        tbnz    x0, #63, failed         // 1, not taken
        mov     w19, w0                 // 1
        mov     w1, #0x2400             // 1  PERF_EVENT_IOC_ENABLE
        mov     x2, #0                  // 1
        mov     x8, #29                 // 1  ioctl
        svc     #0                      // 1
        mov     w0, w19                 // 1, counted
        mov     w1, #0x2401             // 1, counted: PERF_EVENT_IOC_DISABLE
        svc     #0                      // 1, counted
        mov     w0, w19                 // 1
        sub     sp, sp, #16             // 1
        mov     x1, sp                  // 1
        mov     x2, #8                  // 1
        mov     x8, #63                 // 1  read(fd, sp, 8)
        svc     #0                      // 1
        cmp     x0, #8                  // 1
        b.ne    failed                  // 1, not taken
        ldr     x0, [sp]                // 1  load
        bl      print_decimal           // 1, + 12 + 6
        mov     x0, #0                  // 1
        mov     x8, #93                 // 1  exit(0)
        svc     #0                      // 1
failed: neg     w0, w0                  //    exit(errno)
        mov     x8, #93
        svc     #0
        .size   _start, . - _start

#include "print_decimal.aarch64.inc"

        .balign 8
attribute:                              // struct perf_event_attr, PERF_ATTR_SIZE_VER0
        .word   0, 64                   // PERF_TYPE_HARDWARE, size
        .quad   1                       // PERF_COUNT_HW_INSTRUCTIONS
        .quad   0, 0, 0                 // period, sample_type, read_format
        .quad   0x61                    // disabled, exclude_kernel, exclude_hv
        .quad   0, 0                    // wakeup, bp_type; config1
