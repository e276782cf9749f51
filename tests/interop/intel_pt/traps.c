// Three times INT3, behind a NOP by which it is found in the file.
#include <signal.h>

static volatile sig_atomic_t traps;

static void trapped(int number) {
    (void)number;
    traps++;
}

__attribute__((noinline)) static void trap(void) {
    __asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0xef, 0xbe, 0xad, 0xde\n int3" ::: "memory");
}

int main(void) {
    signal(SIGTRAP, trapped);
    for (int i = 0; i < 3; i++) trap();
    return traps != 3;
}
