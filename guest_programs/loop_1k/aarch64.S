// A loop of a thousand rounds. The number on the right is how often the instruction retires.
        .globl  _start
        .type   _start, %function
_start: mov     x0, #1000               //     1
1:      subs    x0, x0, #1              // 1,000
        b.ne    1b                      // 1,000, of which 999 taken
        mov     x8, #93                 //     1  exit(0)
        mov     x0, #0                  //     1
        svc     #0                      //     1
        .size   _start, . - _start
