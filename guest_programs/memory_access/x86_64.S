// Every form of load and store, 100 rounds. A read-modify-write is both; LEA, NOP and PREFETCH are neither.
        .globl  _start
        .type   _start, @function
_start: lea     buffer(%rip), %rbx      //   1
        mov     $100, %ebp              //   1
round:                                  // 100 times each
        // stores: 9
        mov     %al, (%rbx)
        mov     %ax, 2(%rbx)
        mov     %eax, 4(%rbx)
        movq    $7, 8(%rbx)
        movups  %xmm0, 17(%rbx)         // not aligned
        movnti  %rax, 40(%rbx)
        setc    48(%rbx)
        push    %rax
        push    $5
        // loads: 9
        pop     %rax
        pop     %rcx
        mov     (%rbx), %rax
        movzbl  2(%rbx), %eax
        movups  17(%rbx), %xmm1
        add     8(%rbx), %rax
        cmpl    $0, 4(%rbx)
        cmovc   8(%rbx), %rcx           // reads whatever the condition
        imul    $3, 8(%rbx), %rax
        // a load and a store: 6
        incq    8(%rbx)
        addl    $3, 4(%rbx)
        notb    (%rbx)
        shlq    $1, 8(%rbx)
        btsq    $1, 8(%rbx)
        push    8(%rbx)                 // reads the buffer, writes the stack
        // and back: a load and a store: 1
        pop     56(%rbx)                // reads the stack, writes the buffer
        // call stores, ret loads; enter and leave
        call    leaf                    // store
        // neither
        lea     (%rbx), %rdx
        nopl    (%rbx)
        prefetcht0 (%rbx)
        mfence
        dec     %ebp
        jnz     round                   //  99 taken
        xor     %edi, %edi              //   1
        mov     $60, %eax               //   1  exit(0)
        syscall                         //   1
        .size   _start, . - _start

        .type   leaf, @function
leaf:   push    %rbp                    // 100  store
        mov     %rsp, %rbp              // 100
        leave                           // 100  load
        ret                             // 100  load
        .size   leaf, . - leaf

        .bss
        .balign 64
buffer: .skip 256
        .section .note.GNU-stack, "", @progbits
