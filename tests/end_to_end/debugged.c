/* For debuggers: bare metal on the board virt, with functions, two levels, and a second CPU if there is one. */
typedef unsigned long u64;

volatile u64 shared, other, ready;

__attribute__((noinline)) u64 add(u64 a, u64 b) {
    return a + b;
}

__attribute__((noinline)) u64 sum(u64 n) {
    u64 total = 0;
    for (u64 i = 0; i < n; i++)
        total = add(total, i);
    return total;
}

void user(void) {
    shared = sum(5);
    __asm__ volatile("svc #0");
}

void second(void) {
    for (u64 i = 0; i < 300; i++)
        other = add(other, 1);
    ready = 1;
    for (;;)
        __asm__ volatile("wfi");
}

u64 firmware(u64 function, u64 a, u64 b, u64 c) {
    register u64 x0 __asm__("x0") = function, x1 __asm__("x1") = a, x2 __asm__("x2") = b, x3 __asm__("x3") = c;
    __asm__ volatile("hvc #0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
}

void off(void) {
    firmware(0x84000008, 0, 0, 0);
}

void start_second(void);
void to_user(void);

void kernel(void) {
    u64 has_second = firmware(0xc4000003, 1, (u64)start_second, 0) == 0;
    u64 result = sum(10);
    shared = result;
    shared = result + 1;
    while (has_second && !ready)
        ;
    to_user();
}

__asm__(
    "        .global _start\n"
    "_start: adr     x0, stacks\n"
    "        mov     sp, x0\n"
    "        adr     x0, vectors\n"
    "        msr     vbar_el1, x0\n"
    "        isb\n"
    "        b       kernel\n"
    "start_second:\n"
    "        adr     x0, stacks + 4096\n"
    "        mov     sp, x0\n"
    "        b       second\n"
    "to_user:\n"
    "        mov     x0, sp\n"
    "        msr     sp_el0, x0\n"
    "        adr     x0, user\n"
    "        msr     elr_el1, x0\n"
    "        msr     spsr_el1, xzr\n"
    "        eret\n"
    "        .balign 0x800\n"
    "vectors: .org   vectors + 0x400\n"
    "        b       off\n"
    "        .org    vectors + 0x800\n"
    "        .space  4096\n"
    "stacks: .space  4096\n");
