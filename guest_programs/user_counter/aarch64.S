// Reads its own counter in user mode: opens instructions with user access (config1 bit 1), maps the event's page, and
// reads PMEVCNTR<index - 1>_EL0 before and after a loop. The difference is printed: 2,002.
//
// A read sees the instructions before it, not itself: the first MRS, and all between the two, make the difference.
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
        mov     x4, x0                  // 1  mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0)
        mov     x0, #0                  // 1
        mov     x1, #4096               // 1
        mov     x2, #1                  // 1
        mov     x3, #1                  // 1
        mov     x5, #0                  // 1
        mov     x8, #222                // 1
        svc     #0                      // 1
        cmn     x0, #4095               // 1
        b.hs    failed                  // 1, not taken
        ldr     w9, [x0, #12]           // 1  load: perf_event_mmap_page.index
        mov     x0, #-61                // 1
        cbz     w9, failed              // 1, not taken: exit(ENODATA), no user access
        adr     x10, readers            // 1
        add     x10, x10, x9, lsl #3    // 1  two instructions an entry, and index counts from one
        sub     x10, x10, #8            // 1
        blr     x10                     // 1, + 2
        mov     x11, x12                // 1   counted, and the RET before it
        mov     x0, #998                // 1   counted
1:      subs    x0, x0, #1              // 998 counted
        b.ne    1b                      // 998 counted, of which 997 taken
        nop                             // 1   counted
        blr     x10                     // 1   counted, + 2
                                        // from the first MRS, which counts itself: MRS 1, RET 1, mov 2, 2 * 998, nop, blr
        sub     x0, x12, x11            // 1   1 + 1 + 2 + 1,996 + 2 = 2,002
        bl      print_decimal           // 1, + 12 + 6 * 4
        mov     x0, #0                  // 1
        mov     x8, #93                 // 1  exit(0)
        svc     #0                      // 1
failed: neg     w0, w0                  //    exit(errno)
        mov     x8, #93
        svc     #0
        .size   _start, . - _start

        .type   readers, %function
readers:
        .irp    counter, 0, 1, 2, 3, 4, 5
        mrs     x12, pmevcntr\counter\()_el0
        ret
        .endr
        .size   readers, . - readers

#include "print_decimal.aarch64.inc"

        .balign 8
attribute:                              // struct perf_event_attr, PERF_ATTR_SIZE_VER0
        .word   0, 64                   // PERF_TYPE_HARDWARE, size
        .quad   1                       // PERF_COUNT_HW_INSTRUCTIONS
        .quad   0, 0, 0                 // period, sample_type, read_format
        .quad   0x60                    // exclude_kernel, exclude_hv
        .quad   0, 2                    // wakeup, bp_type; config1: user access
