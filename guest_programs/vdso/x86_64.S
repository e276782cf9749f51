// The vDSO of x86-64. Its data, which emulator/linux/mm/vdso.py writes, are in the page before it:
//   0: nanoseconds of a second; 8: the TSC's frequency in Hz;
//   64 + 16 * clock: what that clock showed when the machine started, in ns; its granularity in ns, 0: ask the kernel
// Time is exact: floor(TSC * 10**9 / frequency), as the kernel computes it, not a multiplication and a shift.

        SECOND = 0
        FREQUENCY = 8
        CLOCKS = 64
        MOST_CLOCK = 11
        NR_gettimeofday = 96
        NR_clock_gettime = 228
        NR_clock_getres = 229

        .hidden vdso_data
        .text

.macro  function name
        .globl __vdso_\name
        .type  __vdso_\name, @function
        .weak  \name
        .set   \name, __vdso_\name
        .balign 16
__vdso_\name:
        .cfi_startproc
.endm

.macro  end name
        .cfi_endproc
        .size  __vdso_\name, . - __vdso_\name
        .type  \name, @function
.endm

// rax: nanoseconds since the machine started. Changes rdx. rcx is the data.
.macro  elapsed
        lfence
        rdtsc
        shl    $32, %rdx
        or     %rdx, %rax
        mulq   SECOND(%rcx)
        divq   FREQUENCY(%rcx)
.endm

// int clock_gettime(clockid_t edi, struct timespec *rsi)
function clock_gettime
        cmp    $MOST_CLOCK, %edi
        ja     1f
        lea    vdso_data(%rip), %rcx
        mov    %edi, %r8d
        shl    $4, %r8d
        add    %rcx, %r8
        mov    CLOCKS + 8(%r8), %r9           // granularity
        test   %r9, %r9
        jz     1f
        elapsed
        add    CLOCKS(%r8), %rax
        cmp    $1, %r9
        jne    2f
3:      xor    %edx, %edx
        divq   SECOND(%rcx)
        mov    %rax, (%rsi)
        mov    %rdx, 8(%rsi)
        xor    %eax, %eax
        ret
2:      mov    %rax, %r10                     // down to a multiple of the granularity
        xor    %edx, %edx
        div    %r9
        mov    %r10, %rax
        sub    %rdx, %rax
        jmp    3b
1:      mov    $NR_clock_gettime, %eax
        syscall
        ret
end clock_gettime

// int clock_getres(clockid_t edi, struct timespec *rsi)
function clock_getres
        cmp    $MOST_CLOCK, %edi
        ja     1f
        lea    vdso_data(%rip), %rcx
        mov    %edi, %r8d
        shl    $4, %r8d
        mov    CLOCKS + 8(%rcx, %r8), %r9
        test   %r9, %r9
        jz     1f
        test   %rsi, %rsi
        jz     2f
        movq   $0, (%rsi)
        mov    %r9, 8(%rsi)
2:      xor    %eax, %eax
        ret
1:      mov    $NR_clock_getres, %eax
        syscall
        ret
end clock_getres

// int gettimeofday(struct timeval *rdi, struct timezone *rsi)
function gettimeofday
        lea    vdso_data(%rip), %rcx
        test   %rdi, %rdi
        jz     1f
        elapsed
        add    CLOCKS(%rcx), %rax             // CLOCK_REALTIME is the first
        xor    %edx, %edx
        divq   SECOND(%rcx)
        mov    %rax, (%rdi)
        mov    %rdx, %rax
        xor    %edx, %edx
        mov    $1000, %r8d
        div    %r8
        mov    %rax, 8(%rdi)
1:      test   %rsi, %rsi
        jz     2f
        movq   $0, (%rsi)                     // UTC
2:      xor    %eax, %eax
        ret
end gettimeofday

// time_t time(time_t *rdi)
function time
        lea    vdso_data(%rip), %rcx
        elapsed
        add    CLOCKS(%rcx), %rax
        xor    %edx, %edx
        divq   SECOND(%rcx)
        test   %rdi, %rdi
        jz     1f
        mov    %rax, (%rdi)
1:      ret
end time

// int getcpu(unsigned *rdi, unsigned *rsi, void *)
function getcpu
        rdtscp                                // ecx: IA32_TSC_AUX: node << 12 | CPU
        test   %rdi, %rdi
        jz     1f
        mov    %ecx, %eax
        and    $0xfff, %eax
        mov    %eax, (%rdi)
1:      test   %rsi, %rsi
        jz     2f
        shr    $12, %ecx
        mov    %ecx, (%rsi)
2:      xor    %eax, %eax
        ret
end getcpu
        .section .note.GNU-stack, "", @progbits
