// Touches pages for the first time in the middle of a block: the instruction faults, and then retires once.
        .globl  _start
        .type   _start, %function
_start: adrp    x1, pages               //  1
        add     x1, x1, :lo12:pages     //  1
        mov     x0, #32                 //  1
        mov     x5, #0                  //  1
round:  add     x5, x5, #1              // 32
        str     x5, [x1]                // 32  store to a fresh page
        add     x5, x5, #1              // 32
        ldr     x6, [x1, #4096]         // 32  load from a fresh page (the next round's is the one after)
        add     x5, x5, x6              // 32
        stur    x5, [x1, #1]          // 32  store, to a page that is there by now
        add     x1, x1, #2, lsl #12     // 32
        subs    x0, x0, #1              // 32
        b.ne    round                   // 32, of which 31 taken
        // One store over two fresh pages: it faults twice.
        add     x1, x1, #1, lsl #12     //  1
        str     x5, [x1, #-4]!          //  1  store
        // Fresh stack, 64 KiB further down.
        sub     x2, sp, #16, lsl #12    //  1
        stp     x5, x5, [x2]            //  1  store
        ldp     x6, x7, [x2]            //  1  load
        // Memory that mmap gives.
        mov     x0, #0                  //  1  mmap(NULL, 0x4000, READ | WRITE, PRIVATE | ANONYMOUS, -1, 0)
        mov     x1, #0x4000             //  1
        mov     x2, #3                  //  1
        mov     x3, #0x22               //  1
        mov     x4, #-1                 //  1
        mov     x5, #0                  //  1
        mov     x8, #222                //  1
        svc     #0                      //  1
        ldr     x6, [x0, #0x1000]       //  1  load
        str     x6, [x0, #0x1000]       //  1  store: reading mapped a page that may be the shared zero page
        str     x6, [x0, #0x3ff8]       //  1  store
        mov     x0, x6                  //  1  0
        mov     x8, #93                 //  1  exit(0)
        svc     #0                      //  1
        .size   _start, . - _start

        .bss
        .balign 4096
pages:  .skip   4096 * 68
