// The vDSO of AArch64. Its data, which emulator/linux/mm/vdso.py writes, are in the page before it:
//   0: nanoseconds of a second; 8: the counter's frequency in Hz, which is the same: CNTVCT_EL0 counts nanoseconds;
//   64 + 16 * clock: what that clock showed when the machine started, in ns; its granularity in ns, 0: ask the kernel

        SECOND = 0
        CLOCKS = 64
        MOST_CLOCK = 11
        NR_clock_gettime = 113
        NR_clock_getres = 114
        NR_rt_sigreturn = 139

        .hidden vdso_data
        .text

.macro  function name
        .globl __kernel_\name
        .type  __kernel_\name, %function
        .balign 16
__kernel_\name:
        .cfi_startproc
.endm

.macro  end name
        .cfi_endproc
        .size  __kernel_\name, . - __kernel_\name
.endm

// x9: nanoseconds since the machine started
.macro  elapsed
        isb
        mrs    x9, cntvct_el0
.endm

.macro  data register
        adr    \register, vdso_data
.endm

// int clock_gettime(clockid_t w0, struct timespec *x1)
function clock_gettime
        cmp    w0, #MOST_CLOCK
        b.hi   1f
        data   x2
        ldr    x3, [x2, #SECOND]
        add    x4, x2, w0, uxtw #4
        ldp    x5, x6, [x4, #CLOCKS]          // at the start; granularity
        cbz    x6, 1f
        elapsed
        add    x9, x9, x5
        cmp    x6, #1
        b.ne   2f
3:      udiv   x10, x9, x3
        msub   x11, x10, x3, x9
        stp    x10, x11, [x1]
        mov    w0, #0
        ret
2:      udiv   x10, x9, x6                    // down to a multiple of the granularity
        mul    x9, x10, x6
        b      3b
1:      mov    x8, #NR_clock_gettime
        svc    #0
        ret
end clock_gettime

// int clock_getres(clockid_t w0, struct timespec *x1)
function clock_getres
        cmp    w0, #MOST_CLOCK
        b.hi   1f
        data   x2
        add    x4, x2, w0, uxtw #4
        ldr    x6, [x4, #CLOCKS + 8]
        cbz    x6, 1f
        cbz    x1, 2f
        stp    xzr, x6, [x1]
2:      mov    w0, #0
        ret
1:      mov    x8, #NR_clock_getres
        svc    #0
        ret
end clock_getres

// int gettimeofday(struct timeval *x0, struct timezone *x1)
function gettimeofday
        data   x2
        cbz    x0, 1f
        ldr    x3, [x2, #SECOND]
        ldr    x5, [x2, #CLOCKS]              // CLOCK_REALTIME is the first
        elapsed
        add    x9, x9, x5
        udiv   x10, x9, x3
        msub   x11, x10, x3, x9
        mov    x12, #1000
        udiv   x11, x11, x12
        stp    x10, x11, [x0]
1:      cbz    x1, 2f
        str    xzr, [x1]                      // UTC
2:      mov    w0, #0
        ret
end gettimeofday

// Where handlers return to. As in Linux since 5.8 it has no CFI: unwinders know it by its two instructions.
        .globl __kernel_rt_sigreturn
        .type  __kernel_rt_sigreturn, %function
        nop                                   // what is looked up for a return address is the byte before it
__kernel_rt_sigreturn:
        mov    x8, #NR_rt_sigreturn
        svc    #0
        .size  __kernel_rt_sigreturn, . - __kernel_rt_sigreturn
        .section .note.GNU-stack, "", %progbits
