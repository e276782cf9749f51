// Arithmetic with 128 significant bits, for functions whose results are rounded once: `Exact` as numbers that are exact
// up to their last few bits.
#pragma once

#include <span>

#include "instructions/soft_float.hpp"

namespace perfemu {

inline Exact exact(const Unpacked& value) {
    return {value.sign, value.exponent, static_cast<Wide>(value.significand) << 64};
}
inline Exact exact(bool sign, Wide integer) { return normalized(sign, 127, integer); }
inline Exact scaled(Exact a, int32_t exponent) { return {a.sign, a.exponent + exponent, a.significand}; }
// One whose value lies strictly between two numbers of fewer bits.
inline Exact inexact(Exact a) { return {a.sign, a.exponent, a.significand | 1}; }

Wide high_product(Wide a, Wide b);

Exact product(const Exact& a, const Exact& b);
Exact quotient(const Exact& a, const Exact& b);
// Of two that do not cancel to zero.
Exact sum(const Exact& a, const Exact& b);

// Numbers below 2, in units of 2^-127.
using Fixed = Wide;
constexpr Fixed FIXED_ONE = Wide{1} << 127;
// Of a magnitude below 2.
Fixed fixed(const Exact& a);
Exact from_fixed(Fixed a);
// c[0] + c[1] x + c[2] x^2 ..., or, if it alternates, c[0] - c[1] x + c[2] x^2 ...
Fixed polynomial(std::span<const Fixed> coefficients, Fixed x, bool alternates);

}  // namespace perfemu
