// Two threads that count at the same time. sharing BYTES: each in a word of its own, so far apart, and reads the word
// behind it, on which its next read depends. sharing: both in the same word, by exclusive loads and stores or what the
// ISA has for that.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum { TIMES = 20000 };

static _Alignas(256) unsigned char memory[512];
static uint64_t distance;
static int shared;

static void add_one(volatile uint64_t* counter) {
#ifdef __aarch64__
    uint64_t value;
    uint32_t failed;
    __asm__ volatile("1: ldxr %0, [%2]\n add %0, %0, #1\n stxr %w1, %0, [%2]\n cbnz %w1, 1b"
                     : "=&r"(value), "=&r"(failed)
                     : "r"(counter)
                     : "memory");
#else
    __asm__ volatile("lock incq %0" : "+m"(*counter));
#endif
}

static void* count(void* number) {
    volatile uint64_t* counter = (volatile uint64_t*)(memory + (uintptr_t)number * distance);
    uint64_t zero = 0;
    for (int i = 0; i < TIMES; i++) {
        if (shared) {
            add_one(counter);
        } else {
            *counter = *counter + 1;
            zero = counter[1 + zero];
        }
    }
    return NULL;
}

int main(int argc, char** argv) {
    pthread_t other;
    shared = argc == 1;
    distance = argc > 1 ? (uint64_t)atoi(argv[1]) : 0;
    pthread_create(&other, NULL, count, (void*)1);
    count((void*)0);
    pthread_join(other, NULL);
    uint64_t sum = *(uint64_t*)memory + (distance ? *(uint64_t*)(memory + distance) : 0);
    return sum == 2 * TIMES ? 0 : 1;
}
