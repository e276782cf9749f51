// Prints what x87's transcendental instructions make of random operands: function, ST(1), ST(0), result, status word.
// Arguments: rounds
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "x87_operands.h"

static Extended number(int least, int most, int is_negative) {
    Extended result;
    const int exponent = least + (int)below((uint64_t)(most - least + 1));
    result.significand = below(4) ? random_bits() : random_bits() << below(64);
    result.significand |= 1ull << 63;
    result.sign_exponent = (uint16_t)((exponent + 16383) | is_negative << 15);
    return result;
}
static Extended near_one(void) {
    Extended result = {1ull << 63, 16383};
    const uint64_t distance = random_bits() >> below(64);
    if (below(2)) {
        result.sign_exponent--;
        result.significand = -(distance & ~(1ull << 63));
        if (!(result.significand >> 63)) result.significand = 1ull << 63;
    } else {
        result.significand |= distance >> 1;
    }
    return result;
}
static Extended any(int least, int most) { return number(least, most, (int)below(2)); }

#define DEFINE(NAME, INSTRUCTIONS)                                                             \
    static void run_##NAME(Extended y, Extended x) {                                           \
        Extended result;                                                                       \
        uint16_t status;                                                                       \
        asm volatile("fninit\nfldt %2\nfldt %3\n" INSTRUCTIONS "\nfnstsw %1\nfstpt %0\nfninit" \
                     : "=m"(result), "=m"(status)                                              \
                     : "m"(y), "m"(x)                                                          \
                     : "memory");                                                              \
        print(#NAME, y, x, result, status);                                                    \
    }
static void print(const char* name, Extended y, Extended x, Extended result, unsigned status) {
    printf("%s %04x:%016lx %04x:%016lx %04x:%016lx %04x\n", name, y.sign_exponent, y.significand, x.sign_exponent,
           x.significand, result.sign_exponent, result.significand, status);
}
DEFINE(f2xm1, "f2xm1")
DEFINE(fyl2x, "fyl2x")
DEFINE(fyl2xp1, "fyl2xp1")
DEFINE(fpatan, "fpatan")
DEFINE(fsin, "fsin")
DEFINE(fcos, "fcos")
DEFINE(fptan, "fptan\nfstp %%st(0)")
DEFINE(sine_of_fsincos, "fsincos\nfstp %%st(0)")
DEFINE(cosine_of_fsincos, "fsincos")

int main(int count, char** arguments) {
    const int rounds = count > 1 ? atoi(arguments[1]) : 10;
    for (int i = 0; i < rounds; i++) {
        const Extended one = {1ull << 63, 16383};
        const Extended angle = any(below(8) ? -8 : -16000, below(2) ? 3 : 64);
        run_f2xm1(one, any(below(8) ? -8 : -16000, -1));
        run_fyl2x(any(-20, 20), below(2) ? near_one() : number(-16382, 16383, 0));
        run_fyl2xp1(any(-20, 20), any(below(8) ? -9 : -16000, -3));
        run_fpatan(any(-20, 20), any(-20, 20));
        run_fsin(one, angle);
        run_fcos(one, angle);
        run_fptan(one, angle);
        run_sine_of_fsincos(one, angle);
        run_cosine_of_fsincos(one, angle);
    }
    return 0;
}
