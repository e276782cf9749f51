#include "instructions/soft_float.hpp"

#include <tuple>

namespace perfemu {
namespace {

constexpr int DECIMAL_BYTES = 9;                               // of digits; the tenth has the sign
constexpr uint64_t LARGEST_DECIMAL = 999'999'999'999'999'999;  // 18 digits
constexpr PackedDecimal INDEFINITE_DECIMAL = {0, 0, 0, 0, 0, 0, 0, 0xc0, 0xff, 0xff};

// The integer next to a finite value below 2^64, without its sign.
struct Integer {
    Wide magnitude;
    bool inexact, up;
};

Integer nearest_integer(const Unpacked& value, Rounding rounding) {
    const Wide fixed = shift_right_sticky(static_cast<Wide>(value.significand) << 64, 63 - value.exponent);
    const auto whole = static_cast<uint64_t>(fixed >> 64);
    const Wide rest = fixed << 64;
    const bool up = rounds_up(rest, whole & 1, value.sign, rounding);
    return {static_cast<Wide>(whole) + up, rest != 0, up};
}

// False where the integer's magnitude is above `largest`; then nothing is noted.
bool note_integer(const Integer& integer, uint64_t largest, FloatContext& context) {
    if (integer.magnitude > largest) return false;
    if (integer.inexact) {
        context.raised |= INEXACT_RESULT;
        context.rounded_up = integer.up;
    }
    return true;
}

}  // namespace

template <typename Float>
Float round_to_integral(Float value, FloatContext& context) {
    const Unpacked a = unpack(value, context);
    if (a.is_nan()) return propagate<Float>(a, a, context);
    if (a.kind != Unpacked::IS_FINITE || a.exponent >= 63) return pack<Float>(a);
    if (IS_EXTENDED<Float> && a.denormal) context.raised |= DENORMAL_OPERAND;  // FRNDINT does, ROUNDSD does not
    const Integer integer = nearest_integer(a, context.rounding);
    note_integer(integer, ~uint64_t{0}, context);
    if (!integer.magnitude) return pack<Float>({.kind = Unpacked::IS_ZERO, .sign = a.sign});
    const Exact exact = normalized(a.sign, 127, integer.magnitude);
    return pack<Float>({.kind = Unpacked::IS_FINITE,
                        .sign = a.sign,
                        .exponent = exact.exponent,
                        .significand = static_cast<uint64_t>(exact.significand >> 64)});
}

template <typename Float>
Ordering compare(Float first, Float second, Comparison comparison, FloatContext& context) {
    const Unpacked a = unpack(first, context), b = unpack(second, context);
    if (a.is_nan() || b.is_nan()) [[unlikely]] {
        const bool quiet = a.kind <= Unpacked::IS_QUIET_NAN && b.kind <= Unpacked::IS_QUIET_NAN;
        if (!quiet || comparison == Comparison::SIGNALLING) context.raised |= INVALID_OPERATION;
        return Ordering::UNORDERED;
    }
    if (a.denormal || b.denormal) context.raised |= DENORMAL_OPERAND;
    if (a.kind == Unpacked::IS_ZERO && b.kind == Unpacked::IS_ZERO) return Ordering::EQUAL;
    if (a.kind == Unpacked::IS_ZERO) return b.sign ? Ordering::GREATER : Ordering::LESS;
    if (b.kind == Unpacked::IS_ZERO || a.sign != b.sign) return a.sign ? Ordering::LESS : Ordering::GREATER;
    auto magnitude = [](const Unpacked& value) {
        return std::tuple(value.kind == Unpacked::IS_INFINITE, value.exponent, value.significand);
    };
    if (magnitude(a) == magnitude(b)) return Ordering::EQUAL;
    return (magnitude(a) < magnitude(b)) != a.sign ? Ordering::LESS : Ordering::GREATER;
}

template <typename To, typename From>
To convert(From value, FloatContext& context) {
    const Unpacked a = unpack(value, context);
    if (a.kind == Unpacked::IS_FINITE) [[likely]] {
        if (!IS_EXTENDED<From> && a.denormal) context.raised |= DENORMAL_OPERAND;  // FLD does, FST does not
        if constexpr (To::PRECISION > From::PRECISION) return pack<To>(a);
        return round_and_pack<To>({a.sign, a.exponent, static_cast<Wide>(a.significand) << 64}, context);
    }
    return a.is_nan() ? propagate<To>(a, a, context) : pack<To>(a);
}

template <typename Float>
Float from_integer(int64_t value, FloatContext& context) {
    if (value == 0) return pack<Float>({});
    const bool sign = value < 0;
    const auto magnitude = static_cast<uint64_t>(value);
    const Exact exact = normalized(sign, 127, sign ? -magnitude : magnitude);
    if constexpr (IS_EXTENDED<Float>)  // FILD does not look at the precision control
        return {static_cast<uint64_t>(exact.significand >> 64),
                static_cast<uint16_t>((exact.exponent + MAXIMUM_EXPONENT<Float>) | sign << 15)};
    return round_and_pack<Float>(exact, context);
}

template <typename Float>
int64_t to_integer(Float value, int bits, Rounding rounding, FloatContext& context) {
    const Unpacked a = unpack(value, context);
    const uint64_t least = uint64_t{1} << (bits - 1);
    const auto indefinite = static_cast<int64_t>(-least);
    if (a.kind == Unpacked::IS_ZERO) return 0;
    Integer integer{};
    bool fits = a.kind == Unpacked::IS_FINITE && a.exponent < 64;
    if (fits) {
        integer = nearest_integer(a, rounding);
        fits = note_integer(integer, a.sign ? least : least - 1, context);
    }
    if (!fits) {
        context.raised |= INVALID_OPERATION;
        return indefinite;
    }
    const auto magnitude = static_cast<uint64_t>(integer.magnitude);
    return static_cast<int64_t>(a.sign ? -magnitude : magnitude);
}

Extended from_decimal(const PackedDecimal& decimal) {
    uint64_t magnitude = 0;
    for (int i = DECIMAL_BYTES - 1; i >= 0; i--)
        magnitude = magnitude * 100 + static_cast<uint64_t>((decimal[i] >> 4) * 10 + (decimal[i] & 15));
    FloatContext context;
    Extended result = from_integer<Extended>(static_cast<int64_t>(magnitude), context);
    if (decimal[DECIMAL_BYTES] & 0x80) result.sign_exponent |= 0x8000;
    return result;
}

PackedDecimal to_decimal(Extended value, FloatContext& context) {
    const Unpacked a = unpack(value, context);
    PackedDecimal result{};
    result[DECIMAL_BYTES] = a.sign ? 0x80 : 0;
    if (a.kind == Unpacked::IS_ZERO) return result;
    if (a.kind != Unpacked::IS_FINITE || a.exponent >= 63 ||
        !note_integer(nearest_integer(a, context.rounding), LARGEST_DECIMAL, context)) {
        context.raised |= INVALID_OPERATION;
        return INDEFINITE_DECIMAL;
    }
    auto magnitude = static_cast<uint64_t>(nearest_integer(a, context.rounding).magnitude);
    for (int i = 0; i < DECIMAL_BYTES; i++, magnitude /= 100)
        result[i] = static_cast<uint8_t>(magnitude % 100 / 10 << 4 | magnitude % 10);
    return result;
}

namespace {

Extended exactly(bool sign, int32_t exponent, Wide magnitude, FloatContext& context) {
    if (!magnitude) return pack<Extended>({.kind = Unpacked::IS_ZERO, .sign = sign});
    FloatContext whole = context;
    whole.precision = 64;
    const Extended result = round_and_pack<Extended>(normalized(sign, exponent + 64, magnitude), whole);
    context.raised = whole.raised;
    return result;
}

}  // namespace

RemainderStep remainder_step(Extended first, Extended second, Rounding rounding, FloatContext& context) {
    constexpr int LARGEST_STEP = 64, STEP_UNIT = 32;  // AMD64 APM vol. 5, FPREM
    const Unpacked a = unpack(first, context), b = unpack(second, context);
    if (a.is_nan() || b.is_nan()) return {propagate<Extended>(a, b, context), 0, true};
    if (a.kind == Unpacked::IS_INFINITE || b.kind == Unpacked::IS_ZERO) return {indefinite<Extended>(context), 0, true};
    if (a.denormal || b.denormal) context.raised |= DENORMAL_OPERAND;
    if (a.kind == Unpacked::IS_ZERO) return {first, 0, true};
    const int distance = a.exponent - b.exponent;
    const bool nearest = rounding == Rounding::NEAREST;
    if (b.kind == Unpacked::IS_INFINITE || distance < (nearest ? -1 : 0))
        return {exactly(a.sign, a.exponent, a.significand, context), 0, true};
    if (distance >= LARGEST_STEP) {
        const int step = STEP_UNIT + distance % STEP_UNIT;
        const Wide rest = (static_cast<Wide>(a.significand) << step) % b.significand;
        return {exactly(a.sign, a.exponent - step, rest, context), 0, false};
    }
    // Both as multiples of the dividend's last bit, or the divisor's if that is the smaller one.
    const Wide dividend = static_cast<Wide>(a.significand) << (distance < 0 ? 0 : distance);
    const Wide divisor = static_cast<Wide>(b.significand) << (distance < 0 ? 1 : 0);
    auto quotient = static_cast<uint64_t>(dividend / divisor);
    Wide rest = dividend % divisor;
    const Wide other = divisor - rest;
    const bool up = nearest && (rest > other || (rest == other && quotient & 1));
    if (up) {
        quotient++;
        rest = other;
    }
    return {exactly(a.sign ^ up, b.exponent - (distance < 0), rest, context), quotient, true};
}

#define INSTANTIATE(Float)                                              \
    template Float round_to_integral(Float, FloatContext&);             \
    template Ordering compare(Float, Float, Comparison, FloatContext&); \
    template Float from_integer(int64_t, FloatContext&);                \
    template int64_t to_integer(Float, int, Rounding, FloatContext&);   \
    template Binary32 convert(Float, FloatContext&);                    \
    template Binary64 convert(Float, FloatContext&);                    \
    template Extended convert(Float, FloatContext&);
INSTANTIATE(Binary32)
INSTANTIATE(Binary64)
INSTANTIATE(Extended)
#undef INSTANTIATE

}  // namespace perfemu
