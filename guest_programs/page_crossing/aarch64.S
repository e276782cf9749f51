// Straight-line code over three pages, ten times: 2,000 instructions without a branch, starting 16 bytes before a page end.
        .globl  _start
        .type   _start, %function
_start: mov     x0, #10                 //  1
        mov     x1, #0                  //  1
round:  b       crossing                // 10
back:   subs    x0, x0, #1              // 10
        b.ne    round                   // 10, of which 9 taken
        mov     x2, #20000              //  1  2,000 * 10
        sub     x0, x1, x2              //  1  0
        mov     x8, #93                 //  1  exit(0)
        svc     #0                      //  1
        .size   _start, . - _start

        .balign 4096
        .skip   4096 - 16
        .type   crossing, %function
crossing:
        .rept   2000
        add     x1, x1, #1              // 2,000 * 10
        .endr
        b       back                    // 10
        .size   crossing, . - crossing
