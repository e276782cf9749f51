// Arithmetic of the host's processor, where its result is the one that every processor computes.
//
// IEEE 754 leaves nothing open for operands and results that are normal numbers or zeros, rounded to nearest: no NaN is
// chosen, nothing is tiny, and the only exception that can be raised is the inexact one. Where that is raised already,
// and masked, the result alone is wanted. In all other cases soft_float computes.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "instructions/sse_control.hpp"

namespace perfemu {

template <typename Float>
using HostFloat = std::conditional_t<sizeof(Float) == 4, float, double>;

template <typename Float>
HostFloat<Float> to_host(Float value) {
    return std::bit_cast<HostFloat<Float>>(value);
}
template <typename Float>
Float from_host(HostFloat<Float> value) {
    return std::bit_cast<Float>(value);
}

// MXCSR's rounding is to nearest.
inline bool rounds_to_nearest(uint32_t mxcsr) { return !(mxcsr & MXCSR_ROUNDING); }
// And nobody asks whether results are inexact, because one was.
inline bool inexact_is_known(uint32_t mxcsr) {
    return (mxcsr & (MXCSR_ROUNDING | MXCSR_INEXACT_MASK | INEXACT_RESULT)) == (MXCSR_INEXACT_MASK | INEXACT_RESULT);
}

// Without the sign, one bit further up.
template <typename Float>
typename Float::Word magnitude(Float value) {
    return static_cast<typename Float::Word>(value.bits << 1);
}
template <typename Float>
bool is_zero(Float value) {
    return magnitude(value) == 0;
}
// Neither zero nor denormal, infinite or a NaN; of at least 2^(above) times the least normal number.
template <typename Float>
bool is_normal(Float value, unsigned above = 0) {
    using Word = typename Float::Word;
    constexpr Word UNIT = Word{1} << Float::PRECISION, EXPONENTS = (Word{1} << Float::EXPONENT_BITS) - 1;
    const Word least = static_cast<Word>((above + 1) * UNIT);
    return static_cast<Word>(magnitude(value) - least) < static_cast<Word>((EXPONENTS - 1 - above) * UNIT);
}
template <typename Float>
bool is_ordinary(Float value) {
    return is_normal(value) || is_zero(value);
}

// a + b = sum, exactly: D. E. Knuth, TAOCP vol. 2, 4.2.2, theorem B. Of a sum that is not so small that the error
// could be denormal, which some hosts are told to take for zero.
template <typename Float>
bool sum_is_exact(Float a, Float b, Float sum) {
    using Host = HostFloat<Float>;
    if (!is_normal(sum, Float::PRECISION + 1)) return false;
    const Host x = to_host(a), y = to_host(b), s = to_host(sum), part = s - x;
    return (x - (s - part)) + (y - part) == 0;
}
// Of a product of normal numbers: it has no more bits than fit.
template <typename Float>
bool product_is_exact(Float a, Float b) {
    constexpr int FRACTION_BITS = Float::PRECISION - 1;
    const auto bits = [](Float value) {
        const auto with_integer_bit = value.bits | typename Float::Word{1} << FRACTION_BITS;
        return Float::PRECISION - std::countr_zero(with_integer_bit);
    };
    return bits(a) + bits(b) <= Float::PRECISION;
}

// Whether this host computes as IEEE 754 says. Throws std::runtime_error.
void check_host_arithmetic(const Calibration&);

}  // namespace perfemu
