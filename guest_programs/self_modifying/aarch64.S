// Rewrites an instruction of the loop that is running, ten times, as the architecture asks: DC CVAU, DSB, IC IVAU, DSB,
// ISB. The instruction adds 10, 9, ... 1; the sum is the exit status.
        .section .writable_code, "awx", %progbits
        .globl  _start
        .type   _start, %function
_start: mov     w0, #0                  //  1
        mov     w1, #10                 //  1
        adr     x2, patched             //  1
        ldr     w3, template            //  1  load
round:  add     w4, w3, w1, lsl #10     // 10  ADD w0, w0, #w1: the immediate is in bits 21:10
        str     w4, [x2]                // 10  store
        dc      cvau, x2                // 10
        dsb     ish                     // 10
        ic      ivau, x2                // 10
        dsb     ish                     // 10
        isb                             // 10
patched:
        add     w0, w0, #0              // 10, never as it stands here
        subs    w1, w1, #1              // 10
        b.ne    round                   // 10, of which 9 taken
        mov     x8, #93                 //  1  exit(55)
        svc     #0                      //  1
template:
        add     w0, w0, #0
        .size   _start, . - _start
