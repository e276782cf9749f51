// Calls without returns, and returns to ever the same stack: what is kept of that has bounds.
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) void marker(void) { __asm__ volatile("" ::: "memory"); }

// The innermost call has the number 1. It calls marker at each of these.
__attribute__((noinline)) int recurse(int number, int deepest) {
    if (number == 1 || number == deepest - 100) marker();
    int below = number > 1 ? recurse(number - 1, deepest) : 0;
    if (number == 1000 || number == deepest - 1000) marker();
    __asm__ volatile("" ::: "memory");
    return below + 1;
}

// A coroutine, whose stack nobody has called, calls on a second stack above its own, and returns from there: so often.
#if defined(__x86_64__)
static char stacks[1 << 20] __attribute__((aligned(64)));
__attribute__((naked, noinline)) void alternate(long times, char* stacks_begin) {
    __asm__(
        "push %rbx\n push %r12\n push %r13\n push %r14\n mov %rdi, %rbx\n mov %rsi, %r12\n mov %rsp, %r13\n"
        "lea 65536(%r12), %rsp\n lea 1f(%rip), %rax\n jmp *%rax\n"
        "1: call 2f\n mov %r13, %rsp\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n ret\n"
        "2: mov %rsp, %r14\n lea 524288(%r12), %rsp\n call 3f\n mov %r14, %rsp\n dec %rbx\n jnz 2b\n ret\n"
        "3: ret\n");
}
#else
static char stacks[1];
static void alternate(long times, char* stacks_begin) { (void)times, (void)stacks_begin; }
#endif

int main(int count, char** arguments) {
    if (count != 3) return 2;
    int number = atoi(arguments[2]);
    if (strcmp(arguments[1], "recurse") == 0) {
        if (recurse(number, number) != number) return 3;
    } else {
        alternate(number, stacks);
    }
    marker();
    return 0;
}
