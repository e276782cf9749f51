// Every operation of C's atomics, of every size, by the compiler's out-of-line helpers: those look at what the CPU has.
#include <stdint.h>
#include <stdio.h>

#define ALL_OF(type)                                                                                              \
    static uint64_t of_##type(uint64_t seed) {                                                                    \
        static type at;                                                                                           \
        uint64_t sum = 0;                                                                                         \
        for (int i = 0; i < 100; i++) {                                                                           \
            type value = (type)(seed * (i + 1)), expected = (type)i;                                              \
            sum += __atomic_fetch_add(&at, value, __ATOMIC_SEQ_CST);                                              \
            sum += __atomic_fetch_sub(&at, (type)i, __ATOMIC_RELAXED);                                            \
            sum += __atomic_fetch_or(&at, (type)(value >> 1), __ATOMIC_ACQUIRE);                                  \
            sum += __atomic_fetch_and(&at, (type)~value, __ATOMIC_RELEASE);                                       \
            sum += __atomic_fetch_xor(&at, value, __ATOMIC_ACQ_REL);                                              \
            sum += __atomic_exchange_n(&at, value, __ATOMIC_ACQ_REL);                                             \
            sum += __atomic_compare_exchange_n(&at, &expected, 7, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);         \
            sum += __atomic_compare_exchange_n(&at, &expected, (type)sum, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED); \
            sum += __atomic_load_n(&at, __ATOMIC_ACQUIRE);                                                        \
        }                                                                                                         \
        return sum;                                                                                               \
    }
ALL_OF(uint8_t)
ALL_OF(uint16_t)
ALL_OF(uint32_t)
ALL_OF(uint64_t)

int main(int argc, char** argv) {
    (void)argv;
    const uint64_t seed = 0x9e3779b97f4a7c15 * (uint64_t)argc;
    printf("%llx %llx %llx %llx\n", (unsigned long long)of_uint8_t(seed), (unsigned long long)of_uint16_t(seed),
           (unsigned long long)of_uint32_t(seed), (unsigned long long)of_uint64_t(seed));
    return 0;
}
