// times NUMBER ROUNDS ITERATIONS: for each round, TSC ticks of one iteration of the loop of that number, and of one
// dependent addition just before.
// times chase BYTES STEPS: the same of one step from pointer to pointer, each in a line of 64 bytes, in random order.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <x86intrin.h>

extern void (*loops[])(long iterations, void* data);

enum { ADDITIONS = 100, REPETITIONS = 100 };

static uint64_t now(void) {
    unsigned processor;
    uint64_t time = __rdtscp(&processor);
    _mm_lfence();
    return time;
}

static uint64_t chain(void) {
    uint64_t sum = 0, addend = 1, begin = now();
    for (int i = 0; i < REPETITIONS; i++)
        __asm__ volatile(".rept 100\n\tadd %1, %0\n\t.endr" : "+r"(sum) : "r"(addend));
    return now() - begin;
}

static void print(uint64_t time, long count, uint64_t additions) {
    printf("%.9f %.9f\n", (double)time / (double)count, (double)additions / (ADDITIONS * REPETITIONS));
}

// One cycle through all lines (Sattolo's shuffle), the same in every run.
static void** shuffled_lines(size_t bytes) {
    enum { POINTERS = 8 };
    size_t lines = bytes / 64;
    void** memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t* order = malloc(lines * sizeof *order);
    if (memory == MAP_FAILED || !order) exit(1);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    uint64_t random = 1;
    for (size_t i = 0; i < lines; i++) order[i] = i;
    for (size_t i = lines - 1; i > 0; i--) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t other = (random >> 33) % i, kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (size_t i = 0; i < lines; i++) memory[order[i] * POINTERS] = &memory[order[(i + 1) % lines] * POINTERS];
    free(order);
    return memory;
}

static int chase(size_t bytes, long steps) {
    void** place = shuffled_lines(bytes);
    for (int round = -1; round < 20; round++) {
        uint64_t before = chain(), begin = now();
        for (long i = 0; i < steps; i += 10)
            __asm__ volatile(".rept 10\n\tmov (%0), %0\n\t.endr" : "+r"(place)::"memory");
        uint64_t time = now() - begin;
        if (round >= 0) print(time, steps, before);
    }
    return 0;
}

int main(int count, char** arguments) {
    static _Alignas(4096) uint64_t data[8192];
    if (count != 4) return 2;
    if (!strcmp(arguments[1], "chase")) return chase((size_t)atol(arguments[2]), atol(arguments[3]));
    void (*loop)(long, void*) = loops[atoi(arguments[1])];
    int rounds = atoi(arguments[2]);
    long iterations = atol(arguments[3]);
    for (int round = -1; round < rounds; round++) {  // the first is for warmth
        for (int i = 0; i < 8192; i++) data[i] = 0;
        data[0] = (uint64_t)data;
        loop(100, data);
        uint64_t before = chain(), begin = now();
        loop(iterations, data);
        uint64_t time = now() - begin;
        if (round >= 0) print(time, iterations, before);
    }
    return 0;
}
