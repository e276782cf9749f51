#include "instructions/elementary.hpp"

#include <algorithm>
#include <array>

namespace perfemu {
namespace {

constexpr Wide wide(uint64_t high, uint64_t low) { return static_cast<Wide>(high) << 64 | low; }

constexpr Exact PI = {false, 1, wide(0xc90f'daa2'2168'c234, 0xc4c6'628b'80dc'1cd1)};
constexpr Exact LOGE_2 = {false, -1, wide(0xb172'17f7'd1cf'79ab, 0xc9e3'b398'03f2'f6af)};
constexpr Exact LOG2_E = {false, 0, wide(0xb8aa'3b29'5c17'f0bb, 0xbe87'fed0'691d'3e89)};
constexpr Wide HALF_OF_INTELS_PI = wide(0x3, 0x243f'6a88'85a3'08d3);  // in units of 2^-65

// --- power series, in units of 2^-127 ---

constexpr size_t LONGEST = 40;
using Series = std::array<Fixed, LONGEST>;

// 1 / (first * (first + 1) * ...), with `step` more factors for each coefficient.
constexpr Series factorials(unsigned first, unsigned step) {
    Series result{};
    Fixed value = FIXED_ONE;
    unsigned factor = first;
    for (Fixed& coefficient : result) {
        coefficient = value;
        for (unsigned i = 0; i < step; i++) value /= factor++;
    }
    return result;
}
constexpr Series odd_reciprocals() {
    Series result{};
    for (unsigned i = 0; i < result.size(); i++) result[i] = FIXED_ONE / (2 * i + 1);
    return result;
}
constexpr Series EXPONENTIAL = factorials(2, 1);  // (e^x - 1) / x
constexpr Series SINE = factorials(2, 2);         // sin(x) / x, of x^2, alternating
constexpr Series COSINE = factorials(1, 2);
constexpr Series ARCTANGENT = odd_reciprocals();  // atan(x) / x, of x^2, alternating; atanh(x) / x

// How many coefficients matter below 2^-bits of an argument: c[n] 2^(-bits n) < 2^-128.
constexpr size_t terms(const Series& series, int bits) {
    size_t count = 0;
    while (count < series.size() && series[count] >> std::min<size_t>(127, bits * count)) count++;
    return count;
}

std::span<const Fixed> first_terms(const Series& series, size_t count) { return {series.data(), count}; }

Exact integer(int value) { return exact(value < 0, static_cast<Wide>(value < 0 ? -value : value)); }

Fixed square(const Exact& x) { return fixed(product(x, x)); }

// Of a series that is below 1 for all but 0: also where the difference is too small to see.
Fixed below_one(Fixed value) { return std::min(value, FIXED_ONE - 1); }

Exact arctangent_series(const Exact& x, size_t count) {
    return product(x, from_fixed(below_one(polynomial(first_terms(ARCTANGENT, count), square(x), true))));
}

// --- 2^x - 1 ---

constexpr int STEP_BITS = 5, STEPS = 1 << STEP_BITS;  // of an exponent, of a tangent

Exact exponential_series(const Exact& x, size_t count) {
    return product(x, from_fixed(polynomial(first_terms(EXPONENTIAL, count), fixed(x), x.sign)));
}

// 2^(step / STEPS) - 1.
struct PowerTable {
    std::array<Exact, 2 * STEPS + 1> rows;
    PowerTable() {
        for (int step = -STEPS; step <= STEPS; step++) {
            if (!step) continue;
            rows[step + STEPS] = exponential_series(product(scaled(integer(step), -STEP_BITS), LOGE_2), LONGEST);
        }
    }
    const Exact& operator[](int step) const { return rows[step + STEPS]; }
};

constexpr Exact ONE = {false, 0, FIXED_ONE};

// --- logarithms ---

constexpr unsigned FEWEST = 45, MOST = 91, UNIT = 64;  // m * i / UNIT is near 1, of sqrt(1/2) <= m < sqrt(2)

// log2(1 + r), of small r: 2 atanh(r / (2 + r)) / ln(2).
Exact logarithm_series(const Exact& r, size_t count) {
    const Exact x = quotient(r, sum(exact(false, 2), r));
    const Exact factor = from_fixed(polynomial(first_terms(ARCTANGENT, count), square(x), false));
    return scaled(product(product(x, factor), LOG2_E), 1);
}

// log2(i / UNIT).
struct LogarithmTable {
    std::array<Exact, MOST + 1> rows;
    LogarithmTable() {
        for (unsigned i = FEWEST; i <= MOST; i++) {
            if (i == UNIT) continue;
            const bool below = i < UNIT;
            rows[i] = logarithm_series(scaled(exact(below, below ? UNIT - i : i - UNIT), -6), LONGEST);
        }
    }
};

// log2(2^exponent * significand / 2^127), of what is not 1.
Exact logarithm_of(int32_t exponent, Wide significand) {
    static const LogarithmTable table;
    static constexpr size_t TERMS = terms(ARCTANGENT, 14);
    constexpr uint64_t ROOT_OF_TWO = 0xb504'f333'f9de'6484;
    int32_t by_exponent = exponent;
    int shift = 7;  // so that m * i fits
    if (significand >> 64 >= ROOT_OF_TWO) {
        by_exponent++;
        shift++;
    }
    constexpr Wide UNIT_FRACTION = Wide{1} << 120;
    const Wide fraction = significand >> shift;  // m; the bits that are lost are zero
    const auto i = static_cast<unsigned>(((UNIT_FRACTION >> 56) * UNIT + (fraction >> 57)) / (fraction >> 56));
    const Wide near = fraction * i;  // 1 is UNIT * UNIT_FRACTION
    constexpr Wide NEAR_ONE = UNIT_FRACTION * UNIT;
    Exact result{};
    if (near != NEAR_ONE) {
        const bool below = near < NEAR_ONE;
        result = logarithm_series(normalized(below, 1, below ? NEAR_ONE - near : near - NEAR_ONE), TERMS);
    }
    auto add = [&](const Exact& other) { result = result.significand ? sum(result, other) : other; };
    if (i != UNIT) add({!table.rows[i].sign, table.rows[i].exponent, table.rows[i].significand});
    if (by_exponent) add(integer(by_exponent));
    return result;
}

// --- arctangents ---

// atan(i / STEPS), by the differences of neighbours.
struct ArctangentTable {
    std::array<Exact, STEPS + 1> rows;
    ArctangentTable() {
        for (unsigned i = 1; i <= STEPS; i++) {
            const Exact tangent = quotient(exact(false, STEPS), exact(false, STEPS * STEPS + i * (i - 1)));
            const Exact difference = arctangent_series(tangent, LONGEST);
            rows[i] = i == 1 ? difference : sum(rows[i - 1], difference);
        }
    }
};

// Of small / large <= 1.
Exact arctangent(const Unpacked& small, const Unpacked& large) {
    static const ArctangentTable table;
    static constexpr size_t TERMS = terms(ARCTANGENT, 12);
    constexpr int FARTHEST = 7;  // binary digits: below, the first row is the nearest
    const int distance = large.exponent - small.exponent;
    Exact a = exact(small), b = exact(large);
    a.sign = b.sign = false;
    if (distance > FARTHEST) return arctangent_series(quotient(a, b), TERMS);
    const Wide y = static_cast<Wide>(small.significand) * STEPS, x = static_cast<Wide>(large.significand) << distance;
    const auto i = static_cast<unsigned>((2 * y / x + 1) / 2);
    if (!i) return arctangent_series(quotient(a, b), TERMS);
    const Wide nearest = x * i;
    if (y == nearest) return table.rows[i];
    // atan(t) = atan(c) + atan((t - c) / (1 + t c))
    const bool below = y < nearest;
    const Exact tangent = quotient(exact(below, below ? nearest - y : y - nearest),
                                   exact(false, x * STEPS + static_cast<Wide>(small.significand) * i));
    return sum(table.rows[i], arctangent_series(tangent, TERMS));
}

}  // namespace

Exact exponential_minus_one(const Unpacked& x) {
    static const PowerTable table;
    static constexpr size_t TERMS = terms(EXPONENTIAL, 6);
    FloatContext context;
    const Exact whole = exact(x);
    const Extended steps = pack<Extended>({.kind = Unpacked::IS_FINITE,
                                           .sign = x.sign,
                                           .exponent = x.exponent + STEP_BITS,
                                           .significand = x.significand});
    const auto step =
        x.exponent < -STEP_BITS - 2 ? 0 : static_cast<int>(to_integer(steps, 32, Rounding::NEAREST, context));
    if (!step) return inexact(exponential_series(product(whole, LOGE_2), TERMS));
    const Exact by_step = scaled(integer(-step), -STEP_BITS);
    if (by_step.exponent == whole.exponent && by_step.significand == whole.significand) return inexact(table[step]);
    const Exact rest = exponential_series(product(sum(whole, by_step), LOGE_2), TERMS);
    const Exact power = sum(ONE, table[step]);
    return inexact(sum(table[step], product(power, rest)));
}

Exact logarithm(const Unpacked& x) {
    const Exact value = exact(x);
    const Exact result = logarithm_of(value.exponent, value.significand);
    return value.significand == FIXED_ONE ? result : inexact(result);
}

Exact logarithm_of_one_plus(const Unpacked& x) {
    static constexpr size_t TERMS = terms(ARCTANGENT, 14);
    constexpr int SMALL = -8;
    if (x.exponent < SMALL) return inexact(logarithm_series(exact(x), TERMS));
    const Exact value = sum(ONE, exact(x));
    const Exact result = logarithm_of(value.exponent, value.significand);
    return value.significand == FIXED_ONE ? result : inexact(result);
}

ReducedAngle reduce_angle(const Unpacked& x) {
    constexpr int UNIT_BITS = 65, SMALLEST = -2;
    if (x.exponent < SMALLEST) return {exact(x), 0};
    const Wide angle = static_cast<Wide>(x.significand) << (x.exponent - 63 + UNIT_BITS);
    Wide rest = angle % HALF_OF_INTELS_PI;
    auto quadrant = static_cast<unsigned>(angle / HALF_OF_INTELS_PI & 3);
    bool sign = x.sign;
    if (rest > HALF_OF_INTELS_PI / 2) {
        rest = HALF_OF_INTELS_PI - rest;
        quadrant++;
        sign = !sign;
    }
    if (x.sign) quadrant = -quadrant;
    return {normalized(sign, 127 - UNIT_BITS, rest), quadrant & 3};
}

Exact sine(const Exact& angle) {
    static constexpr size_t TERMS = terms(SINE, 0);
    const Fixed factor = polynomial(first_terms(SINE, TERMS), square(angle), true);
    return inexact(product(angle, from_fixed(below_one(factor))));
}

Exact cosine(const Exact& angle) {
    static constexpr size_t TERMS = terms(COSINE, 0);
    const Fixed value = polynomial(first_terms(COSINE, TERMS), square(angle), true);
    return inexact(from_fixed(below_one(value)));
}

Exact quarters_of_pi(bool sign, unsigned quarters) {
    const Exact result = product(scaled(PI, -2), exact(false, quarters));
    return inexact({sign, result.exponent, result.significand});
}

Exact angle_of(const Unpacked& y, const Unpacked& x) {
    const bool steep = y.exponent > x.exponent || (y.exponent == x.exponent && y.significand > x.significand);
    Exact angle = steep ? arctangent(x, y) : arctangent(y, x);
    if (steep) {
        angle.sign = !x.sign;
        angle = sum(quarters_of_pi(false, 2), angle);
    } else if (x.sign) {
        angle.sign = true;
        angle = sum(quarters_of_pi(false, 4), angle);
    }
    angle.sign = y.sign;
    return inexact(angle);
}

}  // namespace perfemu
