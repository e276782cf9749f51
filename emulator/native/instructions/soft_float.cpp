#include "instructions/soft_float.hpp"

namespace perfemu {
namespace {

constexpr int32_t UNMASKED_SCALE = 24576;  // Intel SDM vol. 1, "Numeric Overflow Exception (#O)"

template <typename Float>
int result_precision(const FloatContext& context) {
    if constexpr (IS_EXTENDED<Float>) return context.precision;
    return Float::PRECISION;
}

struct Kept {
    uint64_t significand;
    bool inexact, up;
};

// The first `precision` bits, rounded; zero where that carries out of bit 63.
Kept round_significand(Wide significand, int precision, bool sign, Rounding rounding) {
    const Wide rest = significand << precision;
    const uint64_t unit = uint64_t{1} << (64 - precision);
    const uint64_t kept = static_cast<uint64_t>(significand >> 64) & ~(unit - 1);
    const bool up = rounds_up(rest, kept & unit, sign, rounding);
    return {up ? kept + unit : kept, rest != 0, up};
}

bool overflows_to_infinity(bool sign, Rounding rounding) {
    return rounding == Rounding::NEAREST || rounding == (sign ? Rounding::DOWN : Rounding::UP);
}

void note_rounding(const Kept& kept, FloatContext& context) {
    if (!kept.inexact) return;
    context.raised |= INEXACT_RESULT;
    context.rounded_up = kept.up;
}

// A result above the format's range, masked.
template <typename Float>
Float overflowed(bool sign, int precision, FloatContext& context) {
    context.raised |= NUMERIC_OVERFLOW | INEXACT_RESULT;
    context.rounded_up = overflows_to_infinity(sign, context.rounding);
    if (context.rounded_up) return pack<Float>(infinite(sign));
    return pack<Float>(finite(sign, MAXIMUM_EXPONENT<Float>, ~uint64_t{0} << (64 - precision)));
}

// A result below the format's normal range before it is rounded, masked. `tiny`: also when it is rounded.
template <typename Float>
Float denormalized(const Exact& exact, int precision, bool tiny, FloatContext& context) {
    const int below = MINIMUM_EXPONENT<Float> - exact.exponent;
    const Kept kept =
        round_significand(shift_right_sticky(exact.significand, below), precision, exact.sign, context.rounding);
    if (kept.inexact && tiny) context.raised |= NUMERIC_UNDERFLOW;
    note_rounding(kept, context);
    return pack<Float>(kept.significand ? finite(exact.sign, MINIMUM_EXPONENT<Float>, kept.significand)
                                        : zero(exact.sign));
}

}  // namespace

template <typename Float>
Float round_and_pack(const Exact& exact, FloatContext& context) {
    const int precision = result_precision<Float>(context);
    int32_t exponent = exact.exponent;
    Kept kept = round_significand(exact.significand, precision, exact.sign, context.rounding);
    if (!kept.significand) {
        kept.significand = INTEGER_BIT;
        exponent++;
    }
    if (exponent < MINIMUM_EXPONENT<Float>) [[unlikely]] {
        if (!(context.unmasked & NUMERIC_UNDERFLOW)) {
            if (!context.flush_to_zero) return denormalized<Float>(exact, precision, true, context);
            context.raised |= NUMERIC_UNDERFLOW | INEXACT_RESULT;
            return pack<Float>(zero(exact.sign));
        }
        context.raised |= NUMERIC_UNDERFLOW;
        const bool scales = IS_EXTENDED<Float> && context.scales_unmasked;
        if (scales) exponent += UNMASKED_SCALE;
        if (exponent < MINIMUM_EXPONENT<Float>) {
            note_rounding(scales ? Kept{0, true, false} : kept, context);
            return pack<Float>(zero(exact.sign));
        }
    } else if (exact.exponent < MINIMUM_EXPONENT<Float>) [[unlikely]] {
        return denormalized<Float>(exact, precision, false, context);
    }
    if (exponent > MAXIMUM_EXPONENT<Float>) [[unlikely]] {
        if (!(context.unmasked & NUMERIC_OVERFLOW)) return overflowed<Float>(exact.sign, precision, context);
        context.raised |= NUMERIC_OVERFLOW;
        const bool scales = IS_EXTENDED<Float> && context.scales_unmasked;
        if (scales) exponent -= UNMASKED_SCALE;
        if (exponent > MAXIMUM_EXPONENT<Float>) {
            note_rounding(scales ? Kept{0, true, true} : kept, context);
            return pack<Float>(infinite(exact.sign));
        }
    }
    note_rounding(kept, context);
    return pack<Float>(finite(exact.sign, exponent, kept.significand));
}

namespace {

// As round_and_pack, short where the result is all of 64 bits and far from the ends of the range.
template <typename Float>
inline Float round_result(const Exact& exact, FloatContext& context) {
    if constexpr (IS_EXTENDED<Float>) {
        const auto from_least = static_cast<uint32_t>(exact.exponent - MINIMUM_EXPONENT<Float>);
        constexpr uint32_t RANGE = MAXIMUM_EXPONENT<Float> - MINIMUM_EXPONENT<Float>;
        if (context.precision == Float::PRECISION && from_least < RANGE) [[likely]] {
            auto significand = static_cast<uint64_t>(exact.significand >> 64);
            const auto rest = static_cast<uint64_t>(exact.significand);
            const bool up = context.rounding == Rounding::NEAREST
                                ? rest > INTEGER_BIT || (rest == INTEGER_BIT && significand & 1)
                                : rest && context.rounding == (exact.sign ? Rounding::DOWN : Rounding::UP);
            significand += up;
            const bool carries = up && !significand;
            note_rounding({significand, rest != 0, up}, context);
            const auto biased = static_cast<uint32_t>(exact.exponent + MAXIMUM_EXPONENT<Float> + carries);
            return {carries ? INTEGER_BIT : significand, static_cast<uint16_t>(biased | exact.sign << 15)};
        }
    }
    return round_and_pack<Float>(exact, context);
}

}  // namespace

template <typename Float>
Float indefinite(FloatContext& context) {
    context.raised |= INVALID_OPERATION;
    return pack<Float>({.kind = Unpacked::IS_QUIET_NAN, .sign = true, .significand = INTEGER_BIT | QUIET_BIT});
}

namespace {

// Intel SDM vol. 1, "Rules for Handling NaNs".
const Unpacked& surviving(const Unpacked& a, const Unpacked& b, NanRule rule) {
    if (!b.is_nan()) return a;
    if (!a.is_nan()) return b;
    if (rule == NanRule::FIRST_OPERAND) return a;
    if (a.kind != b.kind) return a.kind == Unpacked::IS_QUIET_NAN ? a : b;
    if (a.significand != b.significand) return a.significand > b.significand ? a : b;
    return a.sign ? b : a;
}

void note_denormals(const Unpacked& a, const Unpacked& b, FloatContext& context) {
    if (a.denormal || b.denormal) context.raised |= DENORMAL_OPERAND;
}

constexpr Wide HIGHEST_BIT = Wide{1} << 127;

Wide widen(uint64_t significand) { return static_cast<Wide>(significand) << 64; }

// a's significand in 128 bits, `distance` places to the right.
Wide aligned(const Unpacked& a, int distance) {
    const Wide significand = widen(a.significand);
    return distance <= 64 ? significand >> distance : shift_right_sticky(significand, distance);
}

// Of two finite values of the same sign.
Exact sum(const Unpacked& a, const Unpacked& b) {
    const bool swapped = a.exponent < b.exponent;
    const Unpacked &large = swapped ? b : a, &small = swapped ? a : b;
    const Wide shifted = aligned(small, large.exponent - small.exponent);
    const Wide total = widen(large.significand) + shifted;
    const bool carries = total < shifted;
    const Wide halved = total >> 1 | (total & 1) | HIGHEST_BIT;
    return {a.sign, large.exponent + carries, carries ? halved : total};
}

// |a| - |b|, of two finite values that differ, with the sign that a - b has where both are `sign`.
Exact difference(const Unpacked& a, const Unpacked& b, bool sign) {
    const bool swapped = a.exponent < b.exponent || (a.exponent == b.exponent && a.significand < b.significand);
    const Unpacked &large = swapped ? b : a, &small = swapped ? a : b;
    const Wide shifted = aligned(small, large.exponent - small.exponent);
    return normalized(sign != swapped, large.exponent, widen(large.significand) - shifted);
}

template <typename Float>
Float sum_of_finite(const Unpacked& a, const Unpacked& b, FloatContext& context) {
    note_denormals(a, b, context);
    if (a.sign == b.sign) return round_result<Float>(sum(a, b), context);
    if (a.exponent == b.exponent && a.significand == b.significand)
        return pack<Float>(zero(context.rounding == Rounding::DOWN));
    return round_result<Float>(difference(a, b, a.sign), context);
}

template <typename Float>
Float sum_or_difference(Float first, Float second, bool subtracts, FloatContext& context) {
    const Unpacked a = unpack(first, context);
    Unpacked b = unpack(second, context);
    if (a.kind == Unpacked::IS_FINITE && b.kind == Unpacked::IS_FINITE) [[likely]] {
        b.sign ^= subtracts;
        return sum_of_finite<Float>(a, b, context);
    }
    if (a.is_nan() || b.is_nan()) return propagate<Float>(a, b, context);
    b.sign ^= subtracts;
    const bool both_infinite = a.kind == Unpacked::IS_INFINITE && b.kind == Unpacked::IS_INFINITE;
    if (both_infinite && a.sign != b.sign) return indefinite<Float>(context);
    note_denormals(a, b, context);
    if (a.kind == Unpacked::IS_INFINITE) return pack<Float>(a);
    if (b.kind == Unpacked::IS_INFINITE) return pack<Float>(b);
    const bool a_zero = a.kind == Unpacked::IS_ZERO, b_zero = b.kind == Unpacked::IS_ZERO;
    if (a_zero && b_zero) return pack<Float>(a.sign == b.sign ? a : zero(context.rounding == Rounding::DOWN));
    const Unpacked& other = a_zero ? b : a;
    return round_result<Float>({other.sign, other.exponent, widen(other.significand)}, context);
}

// a / b: 127 bits of it and whether there are more.
Exact quotient(const Unpacked& a, const Unpacked& b) {
    const bool below = a.significand < b.significand;
    const QuotientAndRest first = divide_wide(static_cast<Wide>(a.significand) << 63 << below, b.significand);
    const QuotientAndRest second = divide_wide(widen(first.rest), b.significand);
    const Wide bits = widen(first.quotient) | second.quotient | (second.rest != 0);
    return {a.sign != b.sign, a.exponent - b.exponent - below, bits};
}

// floor(sqrt(a)), of a of which one of the first two bits is set.
uint32_t integer_root(uint64_t a) {
    uint64_t root = 0, rest = a;
    for (uint64_t bit = uint64_t{1} << 62; bit; bit >>= 2) {
        const bool fits = rest >= root + bit;
        rest -= fits ? root + bit : 0;
        root = (root >> 1) + (fits ? bit : 0);
    }
    return static_cast<uint32_t>(root);
}

// The same of 128 bits, and what is left: by halves, as in P. Zimmermann, "Karatsuba Square Root".
uint64_t integer_root(Wide a, Wide& rest) {
    const auto high = static_cast<uint64_t>(a >> 64), low = static_cast<uint64_t>(a);
    const uint64_t first = integer_root(high);
    const Wide left = (static_cast<Wide>(high - first * first) << 32) | low >> 32;
    const auto second = static_cast<uint64_t>(left / (2 * first));
    Wide root = (static_cast<Wide>(first) << 32) + second;
    while (root >> 64 || root * root > a) root--;
    rest = a - root * root;
    return static_cast<uint64_t>(root);
}

}  // namespace

template <typename Float>
Float propagate(const Unpacked& a, const Unpacked& b, FloatContext& context) {
    if (a.kind == Unpacked::IS_UNSUPPORTED || b.kind == Unpacked::IS_UNSUPPORTED) return indefinite<Float>(context);
    if (a.kind == Unpacked::IS_SIGNALLING_NAN || b.kind == Unpacked::IS_SIGNALLING_NAN)
        context.raised |= INVALID_OPERATION;
    Unpacked result = surviving(a, b, context.nan_rule);
    result.significand |= QUIET_BIT;
    return pack<Float>(result);
}

template <typename Float>
Float add(Float a, Float b, FloatContext& context) {
    return sum_or_difference(a, b, false, context);
}

template <typename Float>
Float subtract(Float a, Float b, FloatContext& context) {
    return sum_or_difference(a, b, true, context);
}

template <typename Float>
Float multiply(Float first, Float second, FloatContext& context) {
    const Unpacked a = unpack(first, context), b = unpack(second, context);
    if (a.kind == Unpacked::IS_FINITE && b.kind == Unpacked::IS_FINITE) [[likely]] {
        note_denormals(a, b, context);
        const Wide product = static_cast<Wide>(a.significand) * b.significand;
        const bool carries = product >> 127;
        return round_result<Float>({a.sign != b.sign, a.exponent + b.exponent + carries, product << !carries}, context);
    }
    if (a.is_nan() || b.is_nan()) return propagate<Float>(a, b, context);
    const bool infinity = a.kind == Unpacked::IS_INFINITE || b.kind == Unpacked::IS_INFINITE;
    if (infinity && (a.kind == Unpacked::IS_ZERO || b.kind == Unpacked::IS_ZERO)) return indefinite<Float>(context);
    note_denormals(a, b, context);
    return pack<Float>(infinity ? infinite(a.sign ^ b.sign) : zero(a.sign ^ b.sign));
}

template <typename Float>
Float divide(Float first, Float second, FloatContext& context) {
    const Unpacked a = unpack(first, context), b = unpack(second, context);
    if (a.kind == Unpacked::IS_FINITE && b.kind == Unpacked::IS_FINITE) [[likely]] {
        note_denormals(a, b, context);
        return round_result<Float>(quotient(a, b), context);
    }
    if (a.is_nan() || b.is_nan()) return propagate<Float>(a, b, context);
    const bool sign = a.sign ^ b.sign;
    if (a.kind == b.kind) return indefinite<Float>(context);  // 0 / 0, infinity / infinity
    if (a.kind == Unpacked::IS_FINITE && b.kind == Unpacked::IS_ZERO) {
        context.raised |= ZERO_DIVIDE;
        return pack<Float>(infinite(sign));
    }
    note_denormals(a, b, context);
    return pack<Float>(a.kind > b.kind ? infinite(sign) : zero(sign));
}

template <typename Float>
Float square_root(Float value, FloatContext& context) {
    const Unpacked a = unpack(value, context);
    if (a.is_nan()) return propagate<Float>(a, a, context);
    if (a.kind == Unpacked::IS_ZERO) return pack<Float>(a);
    if (a.sign) return indefinite<Float>(context);
    note_denormals(a, a, context);
    if (a.kind == Unpacked::IS_INFINITE) return pack<Float>(a);
    Wide rest;
    const uint64_t root = integer_root(widen(a.significand) >> !(a.exponent & 1), rest);
    // The next bit of the root is set where (root + 1/2)^2 is less than what it is the root of.
    const Wide bits = widen(root) | static_cast<Wide>(rest > root) << 63 | (rest != 0);
    return round_result<Float>({false, a.exponent >> 1, bits}, context);
}

#define INSTANTIATE(Float)                                                     \
    template Float round_and_pack(const Exact&, FloatContext&);                \
    template Float indefinite(FloatContext&);                                  \
    template Float propagate(const Unpacked&, const Unpacked&, FloatContext&); \
    template Float add(Float, Float, FloatContext&);                           \
    template Float subtract(Float, Float, FloatContext&);                      \
    template Float multiply(Float, Float, FloatContext&);                      \
    template Float divide(Float, Float, FloatContext&);                        \
    template Float square_root(Float, FloatContext&);
INSTANTIATE(Binary32)
INSTANTIATE(Binary64)
INSTANTIATE(Extended)
#undef INSTANTIATE

}  // namespace perfemu
