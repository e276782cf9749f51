// x87 control word loads, which some hardware has miscounted: 900,005 instructions with the return.
        .globl  _start
        .type   _start, @function
_start: call    instructions_fldcw      //       1 (and what it does); one store
        xor     %edi, %edi              //       1
        mov     $60, %eax               //       1  exit(0)
        syscall                         //       1
        .size   _start, . - _start

        .type   instructions_fldcw, @function
instructions_fldcw:
        movl    $100000, rounds(%rip)   //       1  store
        fninit                          //       1
1:      fnstcw  before(%rip)            // 100,000  store
        movzwl  before(%rip), %eax      // 100,000  load
        or      $0x0c, %ah              // 100,000
        mov     %ax, changed(%rip)      // 100,000  store
        fldcw   changed(%rip)           // 100,000  load
        fldcw   before(%rip)            // 100,000  load
        lea     1(%rcx), %rcx           // 100,000
        decl    rounds(%rip)            // 100,000  load and store
        jnz     1b                      // 100,000, of which 99,999 taken
        mov     rounds(%rip), %eax      //       1  load
        xor     %edx, %edx              //       1
        ret                             //       1  load
        .size   instructions_fldcw, . - instructions_fldcw

        .bss
rounds:  .skip 4
before:  .skip 2
changed: .skip 2
        .section .note.GNU-stack, "", @progbits
