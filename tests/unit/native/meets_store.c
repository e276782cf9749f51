// A load that meets a store of its block once, among many that do not; and behind it a store to a page that is not there.
#include <stdint.h>
#include <stdlib.h>

enum { TIMES = 400, PAGE = 4096, MEETS = 100 };

static char pages[TIMES][PAGE] __attribute__((aligned(PAGE)));
static char* pointers[TIMES];
static char** where[TIMES];
static char* word;

int main(void) {
    for (int i = 0; i < TIMES; i++) {
        pointers[i] = pages[i];
        where[i] = i == MEETS ? &word : &pointers[i];
    }
    uint64_t left = TIMES;
    char*** next = where;
    __asm__ volatile(
        "1: ldr x2, [%1], #8\n"
        "str %2, [%3]\n"  // to `word`
        "ldr x4, [x2]\n"
        "str %0, [x4]\n"
        "subs %0, %0, #1\n"
        "b.ne 1b\n"
        : "+r"(left), "+r"(next)
        : "r"(pages[MEETS]), "r"(&word)
        : "x2", "x4", "cc", "memory");
    uint64_t sum = 0;
    for (int i = 0; i < TIMES; i++) sum += *(uint64_t*)pages[i];
    return sum != (uint64_t)TIMES * (TIMES + 1) / 2;
}
