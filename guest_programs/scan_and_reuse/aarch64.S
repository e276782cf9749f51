// Two lines that are used again and again, and a scan through 1,600 lines that are used once: what should a cache keep?
        .globl  _start
        .type   _start, %function
_start: adrp    x1, lines               //     1
        add     x1, x1, :lo12:lines     //     1
        add     x2, x1, #128            //     1
        mov     x3, #100                //     1
round:  ldr     x4, [x1]                //   100
        ldr     x4, [x1, #64]           //   100
        ldr     x4, [x1]                //   100
        ldr     x4, [x1, #64]           //   100
        mov     x5, #16                 //   100
scan:   ldr     x4, [x2], #64           // 1,600  16 * 100
        subs    x5, x5, #1              // 1,600
        b.ne    scan                    // 1,600, of which 1,500 taken
        subs    x3, x3, #1              //   100
        b.ne    round                   //   100, of which 99 taken
        mov     x0, #0                  //     1
        mov     x8, #93                 //     1  exit(0)
        svc     #0                      //     1
        .size   _start, . - _start

        .bss
        .balign 4096
lines:  .skip   64 * (2 + 1600)
