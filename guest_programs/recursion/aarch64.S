// Counts down 100 calls deep, and calls a leaf through a register at the bottom. Frames are linked, so that a sample at
// the bottom has a call chain of 102 entries: leaf, 101 x descend, _start.
        .globl  _start
        .type   _start, %function
_start: mov     x29, #0                 //   1  end of the chain
        mov     x30, #0                 //   1
        mov     x0, #100                //   1
        bl      descend                 //   1
        mov     x0, #0                  //   1
        mov     x8, #93                 //   1  exit(0)
        svc     #0                      //   1
        .size   _start, . - _start

        .type   descend, %function
descend:                                // called 101 times, with x0 from 100 to 0
        stp     x29, x30, [sp, #-16]!   // 101  store
        mov     x29, sp                 // 101
        cbz     x0, 1f                  // 101, of which 1 taken
        sub     x0, x0, #1              // 100
        bl      descend                 // 100
        b       2f                      // 100
1:      adr     x1, leaf                //   1
        blr     x1                      //   1
2:      ldp     x29, x30, [sp], #16     // 101  load
        ret                             // 101
        .size   descend, . - descend

        .type   leaf, %function
leaf:   mov     x2, #1                  //   1
        ret                             //   1
        .size   leaf, . - leaf
