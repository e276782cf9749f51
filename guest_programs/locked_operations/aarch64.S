// A spin lock and a counter, with exclusive pairs that never fail: 1,000 rounds.
        .globl  _start
        .type   _start, %function
_start: adrp    x1, lock                //     1
        add     x1, x1, :lo12:lock      //     1
        mov     x0, #1000               //     1
        mov     w4, #1                  //     1
round:  ldaxr   w2, [x1]                // 1,000  load
        cbnz    w2, round               // 1,000, never taken
        stxr    w3, w4, [x1]            // 1,000  store
        cbnz    w3, round               // 1,000, never taken
        ldr     x5, [x1, #8]            // 1,000  load
        add     x5, x5, #1              // 1,000
        str     x5, [x1, #8]            // 1,000  store
        stlr    wzr, [x1]               // 1,000  store
        subs    x0, x0, #1              // 1,000
        b.ne    round                   // 1,000, of which 999 taken
        ldr     x5, [x1, #8]            //     1  load
        sub     x0, x5, #1000           //     1  0: counted to 1,000
        mov     x8, #93                 //     1  exit(0)
        svc     #0                      //     1
        .size   _start, . - _start

        .bss
        .balign 64
lock:   .skip   16
