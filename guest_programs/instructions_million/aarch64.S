// One call of the kernel that counts a million instructions.
        .globl  _start
        .type   _start, %function
_start: bl      instructions_million    //       1 (and what it does)
        mov     x0, #0                  //       1
        mov     x8, #93                 //       1  exit(0)
        svc     #0                      //       1
        .size   _start, . - _start

#include "instructions_million.aarch64.inc"
