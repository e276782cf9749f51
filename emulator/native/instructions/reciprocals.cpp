#include "instructions/reciprocals.hpp"

#include <bit>
#include <cmath>

#include "instructions/sse_control.hpp"

namespace perfemu {
namespace {

// Every processor has its table, within a relative error of 1.5 * 2^-12. Ours is the true value, rounded to nearest to
// 12 bits behind the point: 2^-13, and the same on every host and core.
constexpr int KEPT_BITS = 12, DROPPED_BITS = Binary64::PRECISION - 1 - KEPT_BITS;
constexpr uint32_t SIGN_BIT = 0x8000'0000, INFINITE_BITS = 0x7f80'0000, QUIET = 0x0040'0000,
                   INDEFINITE_BITS = 0xffc0'0000, LEAST_NORMAL = 0x0080'0000;

// Of a positive value, which is far from both ends of its range: its rounding to 53 bits is every host's.
uint32_t approximate(double value) {
    constexpr uint64_t HALF = uint64_t{1} << (DROPPED_BITS - 1);
    const uint64_t bits = std::bit_cast<uint64_t>(value), odd = bits >> DROPPED_BITS & 1;
    const uint64_t kept = (bits + HALF - 1 + odd) >> DROPPED_BITS;  // exponent and fraction
    constexpr uint64_t REBIASED = static_cast<uint64_t>(MAXIMUM_EXPONENT<Binary64> - MAXIMUM_EXPONENT<Binary32>)
                                  << KEPT_BITS;
    const uint64_t least = REBIASED + (uint64_t{1} << KEPT_BITS);
    if (kept < least) return 0;  // tiny results are zeros
    return static_cast<uint32_t>(kept - REBIASED) << (Binary32::PRECISION - 1 - KEPT_BITS);
}

// No rounding control, no exceptions; denormals are zeros.
struct Reciprocal {
    static uint32_t of_positive(double value) { return approximate(1 / value); }
    static uint32_t of_negative(double value) { return SIGN_BIT | approximate(1 / value); }
};
struct ReciprocalSquareRoot {
    static uint32_t of_positive(double value) { return approximate(1 / std::sqrt(value)); }
    static uint32_t of_negative(double) { return INDEFINITE_BITS; }
};

template <typename Function>
Binary32 evaluate(Binary32 value) {
    const uint32_t sign = value.bits & SIGN_BIT, magnitude = value.bits & ~SIGN_BIT;
    if (magnitude > INFINITE_BITS) return {value.bits | QUIET};
    if (magnitude < LEAST_NORMAL) return {sign | INFINITE_BITS};
    const double positive = std::bit_cast<float>(magnitude);
    return {sign ? Function::of_negative(positive) : Function::of_positive(positive)};
}

template <typename Function, int COUNT>
void approximate_elements(Environment*, Vector* destination, const Vector* source) {
    for (int i = 0; i < COUNT; i++) set_element(*destination, i, evaluate<Function>(element<Binary32>(*source, i)));
}

}  // namespace

InstructionFamily reciprocal_family() {
    static const EngineReplacement HELPERS[] = {
        in_place_of("helper_rcpps", approximate_elements<Reciprocal, 4>),
        in_place_of("helper_rcpss", approximate_elements<Reciprocal, 1>),
        in_place_of("helper_rsqrtps", approximate_elements<ReciprocalSquareRoot, 4>),
        in_place_of("helper_rsqrtss", approximate_elements<ReciprocalSquareRoot, 1>),
    };
    return {HELPERS};
}

}  // namespace perfemu
