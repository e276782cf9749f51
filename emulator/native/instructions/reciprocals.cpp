#include "reciprocals.hpp"

#include "sse_control.hpp"

namespace perfemu {
namespace {

// Every processor has its table, within a relative error of 1.5 * 2^-12. Ours is the true value, rounded to nearest to
// 12 bits behind the point: 2^-13, and the same on every host and core.
constexpr int KEPT_BITS = 12, DROPPED_BITS = Binary32::PRECISION - 1 - KEPT_BITS;
constexpr uint32_t SIGN_BIT = 0x8000'0000, INFINITE_BITS = 0x7f80'0000, QUIET = 0x0040'0000,
                   INDEFINITE_BITS = 0xffc0'0000, LEAST_NORMAL = 0x0080'0000;

Binary32 approximate(Binary64 value) {
    FloatContext context;
    const uint32_t bits = convert<Binary32>(value, context).bits;
    const uint32_t magnitude = bits & ~SIGN_BIT, even = magnitude >> DROPPED_BITS & 1;
    const uint32_t rounded = (magnitude + (1u << (DROPPED_BITS - 1)) - 1 + even) >> DROPPED_BITS << DROPPED_BITS;
    return {(bits & SIGN_BIT) | (rounded < LEAST_NORMAL ? 0 : rounded)};  // tiny results are zeros
}

// No rounding control, no exceptions; denormals are zeros.
struct Reciprocal {
    static Binary32 of_positive(Binary32 value) {
        FloatContext context;
        return approximate(
            divide(convert<Binary64>(Binary32{0x3f80'0000}, context), convert<Binary64>(value, context), context));
    }
    static Binary32 of_negative(Binary32 value) { return of_positive(value); }
};
struct ReciprocalSquareRoot {
    static Binary32 of_positive(Binary32 value) {
        FloatContext context;
        return approximate(divide(convert<Binary64>(Binary32{0x3f80'0000}, context),
                                  square_root(convert<Binary64>(value, context), context), context));
    }
    static Binary32 of_negative(Binary32) { return {INDEFINITE_BITS}; }
};

template <typename Function>
Binary32 evaluate(Binary32 value) {
    const uint32_t sign = value.bits & SIGN_BIT, magnitude = value.bits & ~SIGN_BIT;
    if (magnitude > INFINITE_BITS) return {value.bits | QUIET};
    if (magnitude < LEAST_NORMAL) return {sign | INFINITE_BITS};
    return sign ? Function::of_negative(value) : Function::of_positive(value);
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
