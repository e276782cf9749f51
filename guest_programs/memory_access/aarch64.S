// Every form of load and store, 100 rounds. One instruction is one load or store, however many registers it moves.
        .globl  _start
        .type   _start, %function
_start: adrp    x1, buffer              //   1
        add     x1, x1, :lo12:buffer    //   1
        mov     x0, #100                //   1
round:                                  // 100 times each
        // stores: 11
        strb    w0, [x1]
        strh    w0, [x1, #2]
        str     w0, [x1, #4]
        str     x0, [x1, #8]
        stp     w0, w0, [x1, #16]
        stp     x0, x0, [x1, #32]
        str     q0, [x1, #48]
        stp     q0, q1, [x1, #64]
        st1     {v0.16b, v1.16b}, [x1]
        stlr    x0, [x1]
        str     x0, [x1], #8            // post-indexed
        // loads: 15
        ldr     x2, [x1, #-8]!          // pre-indexed
        ldrb    w2, [x1]
        ldrsb   x2, [x1]
        ldrh    w2, [x1, #2]
        ldrsw   x2, [x1, #4]
        ldp     w2, w3, [x1, #16]
        ldpsw   x2, x3, [x1, #16]
        ldp     x2, x3, [x1, #32]
        ldr     q2, [x1, #48]
        ldp     q2, q3, [x1, #64]
        ld1     {v2.16b, v3.16b, v4.16b, v5.16b}, [x1]
        ld4     {v2.4s, v3.4s, v4.4s, v5.4s}, [x1]
        ldar    x2, [x1]
        ldur    x2, [x1, #3]            // not aligned
        ldr     x2, constant            // literal
        // a load and a store, exclusive: they succeed, nothing comes between
        ldxr    x2, [x1]                // load
        stxr    w3, x2, [x1]            // store
        ldaxp   x2, x4, [x1]            // load
        stlxp   w5, x2, x4, [x1]        // store
        // neither
        prfm    pldl1keep, [x1]
        dmb     ish
        clrex
        subs    x0, x0, #1
        b.ne    round                   // 99 taken
        adrp    x6, buffer + 64         //   1
        add     x6, x6, :lo12:buffer+64 //   1
        dc      zva, x6                 //   1  a store of a block
        add     x0, x3, x5              //   1  0: both exclusive stores succeeded
        mov     x8, #93                 //   1  exit(0)
        svc     #0                      //   1
        .balign 8
constant:
        .quad   1
        .size   _start, . - _start

        .bss
        .balign 64
buffer: .skip 256
