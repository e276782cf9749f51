// Arithmetic of the x87 where operands and result are normal numbers, rounded to nearest in 64 bits: nearly always.
// Nothing but the inexact exception is possible then. soft_float computes the rest, and the same.
#pragma once

#include <utility>

#include "instructions/soft_float.hpp"

namespace perfemu {

struct NormalResult {
    Extended value;
    bool inexact = false, up = false;  // and then rounded up
};

constexpr int EXTENDED_BIAS = MAXIMUM_EXPONENT<Extended>, EXTENDED_SPECIAL = 2 * EXTENDED_BIAS + 1;
constexpr uint16_t SIGN_BIT = 0x8000;

inline int biased_exponent(Extended value) { return value.sign_exponent & EXTENDED_SPECIAL; }
inline bool is_normal(Extended value) {
    const auto from_least = static_cast<unsigned>(biased_exponent(value) - 1);
    return from_least < EXTENDED_SPECIAL - 1 && value.significand >> 63;
}

// False where the result may be no normal number. Of `high`, the first bit is set; `rest` comes behind it.
inline bool round_normal(unsigned sign, int exponent, uint64_t high, uint64_t rest, NormalResult& result) {
    if (static_cast<unsigned>(exponent - 1) >= EXTENDED_SPECIAL - 2) [[unlikely]]  // a carry may add one
        return false;
    const bool up = rest >> 63 & ((rest << 1 != 0) | (high & 1));
    const uint64_t rounded = high + up;
    const bool carries = !rounded;
    result.value.significand = rounded | uint64_t{carries} << 63;
    result.value.sign_exponent = static_cast<uint16_t>(sign | static_cast<unsigned>(exponent + carries));
    result.inexact = rest != 0;
    result.up = up;
    return true;
}

// Each of these: false where it is not for here.
inline bool add_normal(Extended a, Extended b, NormalResult& result) {
    if (!is_normal(a) || !is_normal(b)) [[unlikely]]
        return false;
    if (biased_exponent(a) < biased_exponent(b)) std::swap(a, b);
    const int exponent = biased_exponent(a);
    const auto distance = static_cast<unsigned>(exponent - biased_exponent(b));
    if (distance > 63) [[unlikely]]
        return false;
    const unsigned sign = a.sign_exponent & SIGN_BIT;
    const uint64_t shifted = b.significand >> distance, rest = b.significand << 1 << (63 - distance);
    if (!((a.sign_exponent ^ b.sign_exponent) & SIGN_BIT)) {
        const uint64_t high = a.significand + shifted;
        const uint64_t carry = high < shifted;  // without branches: nobody can tell
        const uint64_t lowest = (high & carry) << 63 | rest >> carry | (rest & carry);
        return round_normal(sign, exponent + static_cast<int>(carry), carry << 63 | high >> carry, lowest, result);
    }
    if (a.significand <= shifted) return false;
    const Wide difference = (static_cast<Wide>(a.significand - shifted) << 64) - rest;
    const int zeros = leading_zeros(difference);
    const Wide normal = difference << zeros;
    return round_normal(sign, exponent - zeros, static_cast<uint64_t>(normal >> 64), static_cast<uint64_t>(normal),
                        result);
}

inline bool subtract_normal(Extended a, Extended b, NormalResult& result) {
    return add_normal(a, {b.significand, static_cast<uint16_t>(b.sign_exponent ^ SIGN_BIT)}, result);
}

inline unsigned sign_of_product(Extended a, Extended b) { return (a.sign_exponent ^ b.sign_exponent) & SIGN_BIT; }

inline bool multiply_normal(Extended a, Extended b, NormalResult& result) {
    if (!is_normal(a) || !is_normal(b)) [[unlikely]]
        return false;
    const Wide product = static_cast<Wide>(a.significand) * b.significand;
    const bool carries = product >> 127;
    const int exponent = biased_exponent(a) + biased_exponent(b) - EXTENDED_BIAS + carries;
    const Wide normal = product << !carries;
    return round_normal(sign_of_product(a, b), exponent, static_cast<uint64_t>(normal >> 64),
                        static_cast<uint64_t>(normal), result);
}

inline bool divide_normal(Extended a, Extended b, NormalResult& result) {
    if (!is_normal(a) || !is_normal(b)) [[unlikely]]
        return false;
    const bool below = a.significand < b.significand;
    const Wide dividend = static_cast<Wide>(a.significand) << 63 << below;
    const QuotientAndRest first = divide_wide(dividend, b.significand);
    // The last bits: whether the rest is half of the divisor, more, or neither but not nothing.
    const Wide twice = static_cast<Wide>(first.rest) << 1;
    const uint64_t beyond = (twice >= b.significand ? INTEGER_BIT : 0) | (first.rest && twice != b.significand);
    const int exponent = biased_exponent(a) - biased_exponent(b) + EXTENDED_BIAS - below;
    return round_normal(sign_of_product(a, b), exponent, first.quotient, beyond, result);
}

inline bool compare_normal(Extended a, Extended b, Ordering& ordering) {
    if (!is_normal(a) || !is_normal(b)) [[unlikely]]
        return false;
    // As integers of 80 bits in order of magnitude, then the sign.
    const auto magnitude = [](Extended value) { return Wide{value.sign_exponent} << 64 | value.significand; };
    const bool negative = a.sign_exponent & SIGN_BIT, other = b.sign_exponent & SIGN_BIT;
    if (negative != other)
        ordering = negative ? Ordering::LESS : Ordering::GREATER;
    else if (magnitude(a) == magnitude(b))
        ordering = Ordering::EQUAL;
    else
        ordering = (magnitude(a) < magnitude(b)) != negative ? Ordering::LESS : Ordering::GREATER;
    return true;
}

// To an integer of `bits` bits, rounded to nearest or truncated; false also where it has no such integer.
inline bool integer_of_normal(Extended value, int bits, bool truncates, int64_t& integer, NormalResult& result) {
    const int exponent = biased_exponent(value) - EXTENDED_BIAS;
    if (!is_normal(value) || exponent > bits - 2) [[unlikely]]
        return false;
    const uint64_t whole = exponent < 0 ? 0 : value.significand >> (63 - exponent);
    // What is behind: of less than a half, only that there is something.
    const uint64_t rest = exponent >= 0 ? value.significand << (exponent + 1) : exponent == -1 ? value.significand : 1;
    const bool negative = value.sign_exponent & SIGN_BIT;
    const bool up = !truncates && rest >> 63 & ((rest << 1 != 0) | (whole & 1));
    const uint64_t magnitude = whole + up;
    if (magnitude > (uint64_t{1} << (bits - 1)) - !negative) [[unlikely]]
        return false;
    integer = static_cast<int64_t>(negative ? -magnitude : magnitude);
    result.inexact = rest != 0;
    result.up = up;
    return true;
}

// A number of a shorter format, in extended format, exact.
template <typename Float>
bool widen_normal(Float value, Extended& result) {
    constexpr int FRACTION_BITS = Float::PRECISION - 1, SPECIAL = 2 * MAXIMUM_EXPONENT<Float> + 1;
    const auto exponent = static_cast<int>(value.bits >> FRACTION_BITS) & SPECIAL;
    if (static_cast<unsigned>(exponent - 1) >= SPECIAL - 1) [[unlikely]]
        return false;
    const auto sign = static_cast<unsigned>(value.bits >> (8 * sizeof value.bits - 1)) << 15;
    result = {INTEGER_BIT | static_cast<uint64_t>(value.bits) << (64 - FRACTION_BITS) >> 1,
              static_cast<uint16_t>(sign | static_cast<unsigned>(exponent + EXTENDED_BIAS - MAXIMUM_EXPONENT<Float>))};
    return true;
}

// The other way: the shorter format's bits, which `result` has as an extended number would.
template <typename Float>
bool narrow_normal(Extended value, Float& narrowed, NormalResult& result) {
    constexpr int LOST = 64 - Float::PRECISION, FRACTION_BITS = Float::PRECISION - 1;
    constexpr uint64_t HALF = uint64_t{1} << (LOST - 1);
    const int exponent = biased_exponent(value) - EXTENDED_BIAS + MAXIMUM_EXPONENT<Float>;
    constexpr unsigned LARGEST = 2 * MAXIMUM_EXPONENT<Float>;
    if (static_cast<unsigned>(exponent - 1) >= LARGEST - 1 || !(value.significand >> 63)) [[unlikely]]
        return false;
    using Word = typename Float::Word;
    const uint64_t kept = value.significand >> LOST, rest = value.significand & (2 * HALF - 1);
    const bool up = rest > HALF || (rest == HALF && kept & 1);
    // A carry out of the fraction adds to the exponent, and leaves no fraction.
    const Word sign = static_cast<Word>(value.sign_exponent >> 15) << (8 * sizeof(Word) - 1);
    const Word magnitude = (static_cast<Word>(exponent - 1) << FRACTION_BITS) + static_cast<Word>(kept) + up;
    narrowed = {static_cast<Word>(sign | magnitude)};
    result.inexact = rest != 0;
    result.up = up;
    return true;
}

}  // namespace perfemu
