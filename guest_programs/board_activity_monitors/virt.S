// The Activity Monitors as a kernel has them: what EL0 and EL1 may access, what the registers tell, and what they count.
        .include "virt.aarch64.inc"
        .set    SETTINGS, 3             // EL0 with AMUSERENR_EL0.EN zero, with one, and EL1
        .set    ACCESSES, 24
        .set    SVC, 0x15               // ESR_EL1.EC
        .set    TIMER, 1 << 27          // the virtual timer's PPI
        .set    TICKS, 1000

#define AMCR            s3_3_c13_c2_0
#define AMCFGR          s3_3_c13_c2_1
#define AMCGCR          s3_3_c13_c2_2
#define AMUSERENR       s3_3_c13_c2_3
#define AMCNTENCLR0     s3_3_c13_c2_4
#define AMCNTENSET0     s3_3_c13_c2_5
#define AMCG1IDR        s3_3_c13_c2_6
#define AMCNTENCLR1     s3_3_c13_c3_0
#define AMCNTENSET1     s3_3_c13_c3_1
#define AMEVCNTR00      s3_3_c13_c4_0
#define AMEVCNTR01      s3_3_c13_c4_1
#define AMEVCNTR02      s3_3_c13_c4_2
#define AMEVCNTR03      s3_3_c13_c4_3
#define AMEVTYPER00     s3_3_c13_c6_0
#define AMEVTYPER01     s3_3_c13_c6_1
#define AMEVTYPER02     s3_3_c13_c6_2
#define AMEVTYPER03     s3_3_c13_c6_3
#define AMEVCNTR10      s3_3_c13_c12_0
#define AMEVCNTR11      s3_3_c13_c12_1
#define AMEVTYPER10     s3_3_c13_c14_0
#define AMEVCNTVOFF00   s3_4_c13_c8_0

        .text
        .globl  _start
_start: use_vectors                     // 3
        adr     x20, accesses           // 1
next:   mov     x19, #0                 // 24  for each access
        mov     x21, #0                 // 24
        mov     x22, #0                 // 24
each:   and     x0, x19, #1             // 72  for each setting of each access
        msr     AMUSERENR, x0           // 72
        lsr     x0, x19, #1             // 72
        add     x0, x0, x0, lsl #2      // 72  5: EL1, with its own stack pointer
        msr     spsr_el1, x0            // 72
        msr     elr_el1, x20            // 72
        eret                            // 72

back:   mrs     x0, esr_el1             // 72
        lsr     x1, x0, #26             // 72
        cmp     x1, #SVC                // 72
        cset    x2, ne                  // 72
        csel    x22, x0, x22, ne        // 72
        lsl     x2, x2, x19             // 72
        orr     x21, x21, x2            // 72
        add     x19, x19, #1            // 72
        cmp     x19, #SETTINGS          // 72
        b.ne    each                    // 72, of which 24 * 2 taken
        mov     x1, x21                 // 24
        mov     x2, #1                  // 24
        mov     w7, #' '                // 24
        bl      hex                     // 24, and of its own 2 + 10 + 1
        mov     x1, x22                 // 24
        mov     x2, #8                  // 24
        mov     w7, #'\n'               // 24
        bl      hex                     // 24, and of its own 2 + 10 * 8 + 1
        add     x20, x20, #8            // 24
        adr     x0, last                // 24
        cmp     x20, x0                 // 24
        b.ne    next                    // 24, of which 23 taken

        .macro  show register           // 4, and of hex 2 + 10 * 8 + 1
        mrs     x1, \register
        mov     x2, #8
        mov     w7, #'\n'
        bl      hex
        .endm
        .irp    register, AMCFGR, AMCGCR, AMCG1IDR, AMCNTENSET0, AMCNTENCLR1, AMEVTYPER00, AMEVTYPER01, AMEVTYPER02
        show    \register
        .endr
        .irp    register, AMEVTYPER03, AMEVTYPER10
        show    \register
        .endr
        mrs     x1, s3_0_c0_c4_0        // 1   ID_AA64PFR0_EL1
        ubfx    x1, x1, #44, #4         // 1   AMU
        mov     x2, #1                  // 1
        mov     w7, #'\n'               // 1
        bl      hex                     // 1, and of its own 2 + 10 + 1

        mrs     x10, AMEVCNTR02         // 1   instructions retired: this one, and 1 + 2 * 10 behind it
        mov     x0, #10                 // 1
1:      sub     x0, x0, #1              // 10
        cbnz    x0, 1b                  // 10, of which 9 taken
        mrs     x11, AMEVCNTR02         // 1
        sub     x1, x11, x10            // 1
        mov     x2, #2                  // 1
        mov     w7, #' '                // 1
        bl      hex                     // 1, and of its own 2 + 10 * 2 + 1
        mrs     x10, AMEVCNTR10         // 1   BR_RETIRED
        mov     x0, #16                 // 1
1:      sub     x0, x0, #1              // 16
        cbnz    x0, 1b                  // 16, of which 15 taken
        mrs     x11, AMEVCNTR10         // 1
        sub     x1, x11, x10            // 1
        mov     x2, #2                  // 1
        mov     w7, #'\n'               // 1
        bl      hex                     // 1, and of its own 2 + 10 * 2 + 1

// Until now it has never waited: the constant counter shows what the system counter does.
        mrs     x10, cntvct_el0         // 1
        mrs     x11, AMEVCNTR01         // 1
        mrs     x12, cntvct_el0         // 1
        cmp     x11, x10                // 1
        ccmp    x12, x11, #0, hs        // 1   else: lower
        cset    x13, hs                 // 1

// While it waits for the timer, neither that nor the cycles go on.
        gic_on                          // 8, and a store
        private_on TIMER                // 5, and two stores, a load
        mov     x0, #TICKS              // 1
        msr     cntv_tval_el0, x0       // 1
        mov     x0, #1                  // 1
        msr     cntv_ctl_el0, x0        // 1
        mrs     x10, cntvct_el0         // 1
        mrs     x11, AMEVCNTR01         // 1
        mrs     x14, AMEVCNTR00         // 1
        wfi                             // 1
        mrs     x15, AMEVCNTR00         // 1
        mrs     x16, AMEVCNTR01         // 1
        mrs     x17, cntvct_el0         // 1
        sub     x17, x17, x10           // 1   nearly all ticks have passed
        cmp     x17, #TICKS * 9 / 10    // 1
        cset    x0, hs                  // 1
        add     x13, x0, x13, lsl #1    // 1
        sub     x16, x16, x11           // 1
        cmp     x16, #TICKS / 10        // 1   ... and of these hardly any
        cset    x0, lo                  // 1
        add     x13, x0, x13, lsl #1    // 1
        sub     x15, x15, x14           // 1
        cmp     x15, #TICKS             // 1   a tick is 16 cycles and more
        cset    x0, lo                  // 1
        add     x1, x0, x13, lsl #1     // 1
        mov     x2, #1                  // 1
        mov     w7, #'\n'               // 1
        bl      hex                     // 1, and of its own 2 + 10 + 1
        mov     x1, #0                  // 1
        b       end_with                // 1, and of its own 4

        hex_function

accesses:
        .irp    register, AMCR, AMCNTENCLR0, AMCNTENSET0, AMCNTENCLR1, AMCNTENSET1, AMEVCNTR00, AMEVCNTR10, AMUSERENR
        try_read \register
        try_write \register
        .endr
        try_read AMCFGR
        try_read AMCG1IDR
        try_read AMEVCNTR01
        try_read AMEVTYPER03
        try_write AMEVTYPER03
        try_write AMEVTYPER10
        try_read AMEVCNTR11             // there is one auxiliary counter
        try_read AMEVCNTVOFF00           // EL2's
last:
        .if     last - accesses - 8 * ACCESSES
        .error  "ACCESSES"
        .endif
        .ltorg
        functions
        vectors back, bad, back, bad
