// Every form of branch, in patterns with known outcomes. x0 runs from 1,000 down to 1.
        .globl  _start
        .type   _start, %function
_start: mov     x0, #1000               //     1
        adr     x9, odd                 //     1
        adr     x10, even               //     1
round:  tbnz    x0, #0, 1f              // 1,000, taken when odd: 500
        nop                             //   500
1:      tbz     x0, #1, 2f              // 1,000, taken when bit 1 is clear: 500
        nop                             //   500
2:      cbz     x0, 3f                  // 1,000, never taken
        cmp     x0, #750                // 1,000
        b.hi    3f                      // 1,000, taken for 751 to 1,000: 250
        nop                             //   750
3:      tst     x0, #1                  // 1,000
        csel    x11, x9, x10, ne        // 1,000  no branch
        br      x11                     // 1,000
odd:    b       4f                      //   500
even:   nop                             //   500
4:      sub     x0, x0, #1              // 1,000
        cbnz    x0, round               // 1,000, of which 999 taken
        mov     x8, #93                 //     1  exit(0)
        svc     #0                      //     1
        .size   _start, . - _start
