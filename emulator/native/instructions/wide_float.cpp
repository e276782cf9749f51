#include "instructions/wide_float.hpp"

#include <utility>

namespace perfemu {
namespace {

struct Product {
    Wide high, low;
};

Product full_product(Wide a, Wide b) {
    const auto a1 = static_cast<uint64_t>(a >> 64), a0 = static_cast<uint64_t>(a);
    const auto b1 = static_cast<uint64_t>(b >> 64), b0 = static_cast<uint64_t>(b);
    const Wide low = static_cast<Wide>(a0) * b0, high = static_cast<Wide>(a1) * b1;
    const Wide first = static_cast<Wide>(a1) * b0, second = static_cast<Wide>(a0) * b1;
    const Wide middle = (low >> 64) + static_cast<uint64_t>(first) + static_cast<uint64_t>(second);
    return {high + (first >> 64) + (second >> 64) + (middle >> 64), (middle << 64) | static_cast<uint64_t>(low)};
}

// The next 64 bits of a quotient, and what is left; `rest` < `divisor`, of which bit 127 is set. As in Knuth, "The Art
// of Computer Programming", vol. 2, algorithm D.
uint64_t quotient_digit(Wide& rest, Wide divisor) {
    const auto high = static_cast<uint64_t>(divisor >> 64), low = static_cast<uint64_t>(divisor);
    const bool large = rest >> 64 >= high;
    uint64_t digit = large ? ~uint64_t{0} : static_cast<uint64_t>(rest / high);
    Wide left = rest - static_cast<Wide>(digit) * high;
    Wide part = static_cast<Wide>(digit) * low;
    while (!(left >> 64) && part > left << 64) {
        digit--;
        left += high;
        part -= low;
    }
    rest = (rest << 64) - digit * divisor;
    return digit;
}

}  // namespace

Wide high_product(Wide a, Wide b) { return full_product(a, b).high; }

Exact product(const Exact& a, const Exact& b) {
    const Product full = full_product(a.significand, b.significand);
    const bool carries = full.high >> 127;
    const Wide significand = carries ? full.high : full.high << 1 | full.low >> 127;
    const Wide lost = carries ? full.low : full.low << 1;
    return {a.sign != b.sign, a.exponent + b.exponent + carries, significand | (lost != 0)};
}

Exact quotient(const Exact& a, const Exact& b) {
    const bool above = a.significand >= b.significand;
    Wide rest = a.significand >> above;
    const uint64_t high = quotient_digit(rest, b.significand), low = quotient_digit(rest, b.significand);
    return normalized(a.sign != b.sign, a.exponent - b.exponent - 1 + above,
                      static_cast<Wide>(high) << 64 | low | (rest != 0));
}

Exact sum(const Exact& first, const Exact& second) {
    const bool swaps = first.exponent < second.exponent ||
                       (first.exponent == second.exponent && first.significand < second.significand);
    const Exact &large = swaps ? second : first, &small = swaps ? first : second;
    const Wide shifted = shift_right_sticky(small.significand, large.exponent - small.exponent);
    if (large.sign != small.sign) return normalized(large.sign, large.exponent, large.significand - shifted);
    return normalized(large.sign, large.exponent + 1,
                      (large.significand >> 1) + (shifted >> 1) + (large.significand & shifted & 1));
}

Fixed fixed(const Exact& a) { return a.exponent < -127 ? 0 : a.significand >> -a.exponent; }

Exact from_fixed(Fixed a) { return normalized(false, 0, a); }

Fixed polynomial(std::span<const Fixed> coefficients, Fixed x, bool alternates) {
    Fixed result = 0;
    for (size_t i = coefficients.size(); i-- > 0;) {
        const Fixed product = high_product(result, x) << 1;
        result = alternates ? coefficients[i] - product : coefficients[i] + product;
    }
    return result;
}

}  // namespace perfemu
