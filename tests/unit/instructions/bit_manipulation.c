// BMI1 and BMI2 with every index, start and length, from registers and from memory, and the flags that they define.
#pragma GCC target("bmi,bmi2")
#include <stdint.h>
#include <stdio.h>

enum { CARRY = 1, ZERO = 0x40, SIGN = 0x80, OVERFLOW = 0x800 };

static uint64_t state = 0x123456789abcdef1;

static uint64_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545F4914F6CDD1Du;
}

static const uint64_t SPECIAL[] = {0, 1, 2, 0x80000000, 0xffffffff, 0x100000000, 1ull << 63, ~0ull, 0xf0f0f0f0f0f0f0f0};

static uint64_t next_value(void) {
    uint64_t choice = next_random();
    return choice & 1 ? SPECIAL[(choice >> 8) % (sizeof SPECIAL / sizeof *SPECIAL)] : next_random();
}

static void mix(uint64_t* sum, uint64_t value) { *sum = (*sum ^ value) * 0x100000001b3u; }

// `instruction` reads %1 and leaves its result in RBX; some have RCX for a control. All flags are set before.
#define TRY(instruction, flags_defined)                                                                           \
    do {                                                                                                          \
        uint64_t sum = 0;                                                                                         \
        for (unsigned control = 0; control < 0x2000; control += control < 0x200 ? 1 : 37) {                       \
            uint64_t value = next_value(), count = control | next_random() << 16, result, flags;                  \
            asm volatile(                                                                                         \
                "mov %4, %%rcx; mov %3, %%rdx; mov $-1, %%rbx; mov $0x8d5, %%eax; push %%rax; popfq;" instruction \
                "; pushfq; popq %1; mov %%rbx, %0"                                                                \
                : "=m"(result), "=m"(flags)                                                                       \
                : "r"(&value), "m"(value), "m"(count)                                                             \
                : "rax", "rbx", "rcx", "rdx", "r13", "cc", "memory");                                             \
            mix(&sum, result);                                                                                    \
            mix(&sum, flags & (flags_defined));                                                                   \
        }                                                                                                         \
        printf("%s: %016lx\n", instruction, sum);                                                                 \
    } while (0)

int main(void) {
    TRY("bzhi %%rcx, %%rdx, %%rbx", CARRY | ZERO | SIGN | OVERFLOW);
    TRY("bzhi %%ecx, %%edx, %%ebx", CARRY | ZERO | SIGN | OVERFLOW);
    TRY("bzhi %%rcx, (%2), %%rbx", CARRY | ZERO | SIGN | OVERFLOW);
    TRY("bzhi %%ecx, (%2), %%ebx", CARRY | ZERO | SIGN | OVERFLOW);
    TRY("bextr %%rcx, %%rdx, %%rbx", CARRY | ZERO | OVERFLOW);
    TRY("bextr %%ecx, %%edx, %%ebx", CARRY | ZERO | OVERFLOW);
    TRY("bextr %%rcx, (%2), %%rbx", CARRY | ZERO | OVERFLOW);
    TRY("blsi %%rdx, %%rbx", CARRY | ZERO | SIGN | OVERFLOW);
    TRY("blsi %%edx, %%ebx", CARRY | ZERO | SIGN | OVERFLOW);
    TRY("blsi (%2), %%ebx", CARRY | ZERO | SIGN | OVERFLOW);
    TRY("blsr %%rdx, %%rbx", CARRY | ZERO | SIGN | OVERFLOW);
    TRY("blsr %%edx, %%ebx", CARRY | ZERO | SIGN | OVERFLOW);
    TRY("blsr (%2), %%rbx", CARRY | ZERO | SIGN | OVERFLOW);
    TRY("blsmsk %%rdx, %%rbx", CARRY | ZERO | SIGN | OVERFLOW);
    TRY("blsmsk %%edx, %%ebx", CARRY | ZERO | SIGN | OVERFLOW);
    TRY("andn %%rcx, %%rdx, %%rbx", CARRY | ZERO | SIGN | OVERFLOW);
    TRY("andn %%ecx, %%edx, %%ebx", CARRY | ZERO | SIGN | OVERFLOW);
    TRY("tzcnt %%rdx, %%rbx", CARRY | ZERO);
    TRY("tzcnt %%edx, %%ebx", CARRY | ZERO);
    TRY("tzcnt %%dx, %%bx", CARRY | ZERO);
    TRY("lzcnt %%rdx, %%rbx", CARRY | ZERO);
    TRY("lzcnt %%edx, %%ebx", CARRY | ZERO);
    TRY("pdep %%rcx, %%rdx, %%rbx", 0x8d5);
    TRY("pext %%ecx, %%edx, %%ebx", 0x8d5);
    TRY("shlx %%rcx, %%rdx, %%rbx", 0x8d5);
    TRY("sarx %%ecx, %%edx, %%ebx", 0x8d5);
    TRY("shrx %%rcx, %%rdx, %%rbx", 0x8d5);
    TRY("rorx $7, %%edx, %%ebx", 0x8d5);
    TRY("mulx %%rcx, %%rcx, %%rbx", 0x8d5);
    TRY("mulx %%ecx, %%eax, %%ebx", 0x8d5);
    // The flags reach what asks for them; other bases, indices and segments; and 32-bit addresses.
    TRY("blsi %%rdx, %%rbx; setc %%bl; cmovz %%rcx, %%rbx", 0x8c1);
    TRY("bzhi %%ecx, %%edx, %%ebx; adc $5, %%rbx", 0x8c1);
    TRY("bzhi %%ecx, %%edx, %%ebx; jc 1f; not %%rbx; 1:", 0);
    TRY("bextr %%rcx, %%rdx, %%rbx; cmovz %%rdx, %%rbx", 0);
    TRY("mov $2, %%eax; sub $0x12a, %2; blsr 0x122(%2,%%rax,4), %%rbx; lea 0x12a(%2), %2", 0);
    TRY("mov %2, %%r13; bzhi %%rcx, 0(%%r13), %%rbx; mov %%r13, %2", 0);
    TRY("xor %%eax, %%eax; blsi %%fs:0(%%rax), %%rbx; popcnt %%rbx, %%rbx", 0x8c1);
    TRY("sub $64, %%rsp; mov %%rdx, 8(%%rsp); bextr %%rcx, 8(%%rsp), %%rbx; lea 64(%%rsp), %%rsp", 0);
    TRY("jmp 2f; 1: .quad 0x123456789abc; 2: bzhi %%rcx, 1b(%%rip), %%rbx", 0x8c1);
    return 0;
}
