// A jump, a branch that falls through and a loop branch a round: 4,499,995 instructions with the return.
        .globl  _start
        .type   _start, %function
_start: bl      branches_testcode       //       1 (and what it does)
        mov     x0, #0                  //       1
        mov     x8, #93                 //       1  exit(0)
        svc     #0                      //       1
        .size   _start, . - _start

        .type   branches_testcode, %function
branches_testcode:
        ldr     x2, =499999             //       1  one load, from the literal pool
        mov     x3, #0                  //       1
1:      add     x3, x3, #1              // 499,999
        b       2f                      // 499,999
        nop                             //       0  jumped over
2:      cmp     x2, #0                  // 499,999
        b.eq    3f                      // 499,999, never taken: x2 is still at least 1
        add     x3, x3, #1              // 499,999
        eor     x4, x3, x2              // 499,999
        add     x3, x3, x4              // 499,999
        subs    x2, x2, #1              // 499,999
        b.ne    1b                      // 499,999, of which 499,998 taken
3:      mov     w0, #0                  //       1
        ret                             //       1
        .size   branches_testcode, . - branches_testcode
