// Random numbers, the same in every run, and the x87's format in memory.
#pragma once

#include <stdint.h>

static uint64_t state = 0x2545f4914f6cdd1d;
static uint64_t random_bits(void) {  // xorshift64*
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1d;
}
static uint64_t below(uint64_t n) { return (random_bits() >> 8) % n; }

typedef struct {
    uint64_t significand;
    uint16_t sign_exponent;
} __attribute__((packed)) Extended;
