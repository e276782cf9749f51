/* What user mode learns of descriptors by LAR, LSL, VERR and VERW, and what is left of the flags. */
#include <stdint.h>
#include <stdio.h>

enum { CPU_NUMBER = 0x78 }; /* its limit is of the CPU that executes */
#define KEPT 0x895          /* CF, PF, AF, SF, OF */
#define ASK(instruction, flags, value, selector)                                                        \
    asm volatile("push %[all]; popf; " instruction "; pushf; pop %[left]"                               \
                 : [out] "+r"(value), [left] "=&r"(flags) : [all] "r"(0x8d7l), [in] "r"(selector) : "cc")

int main(void) {
    for (uint32_t selector = 0; selector < 0x100; selector++) {
        uint64_t rights = 0x1111111122222222, limit = rights, nothing = 0, flags[4];
        if ((selector & ~3u) == CPU_NUMBER) continue;
        ASK("lar %k[in], %k[out]", flags[0], rights, selector);
        ASK("lsl %k[in], %k[out]", flags[1], limit, selector);
        ASK("verr %w[in]", flags[2], nothing, selector);
        ASK("verw %w[in]", flags[3], nothing, selector);
        printf("%#x: %#lx %#lx", selector, rights, limit);
        for (int one = 0; one < 4; one++) printf(" %ld %#lx", flags[one] >> 6 & 1, flags[one] & KEPT);
        puts("");
    }
    return 0;
}
