// Floating point as x86 processors compute it, in integers: the same on every host.
#pragma once

#include <array>
#include <cstdint>

namespace perfemu {

// As MXCSR.RC and the x87 control word encode it.
enum class Rounding : uint8_t { NEAREST, DOWN, UP, TOWARD_ZERO };

// The bits of MXCSR and of the x87 status word; their masks are in the same order.
enum FloatException : uint8_t {
    INVALID_OPERATION = 0x01,
    DENORMAL_OPERAND = 0x02,
    ZERO_DIVIDE = 0x04,
    NUMERIC_OVERFLOW = 0x08,
    NUMERIC_UNDERFLOW = 0x10,
    INEXACT_RESULT = 0x20,
    BEFORE_COMPUTATION = INVALID_OPERATION | DENORMAL_OPERAND | ZERO_DIVIDE,
    ALL_FLOAT_EXCEPTIONS = 0x3f,
};

// Which of two NaNs survives: SSE's first operand; x87's quiet one, then the one of the larger significand.
enum class NanRule : uint8_t { FIRST_OPERAND, LARGER_SIGNIFICAND };

// How to compute, and what happened.
struct FloatContext {
    Rounding rounding = Rounding::NEAREST;
    NanRule nan_rule = NanRule::FIRST_OPERAND;
    uint8_t precision = 64;            // of results in extended format: 24, 53 or 64 bits
    bool denormals_are_zeros = false;  // MXCSR.DAZ
    bool flush_to_zero = false;        // MXCSR.FZ; holds where underflow is masked
    uint8_t unmasked = 0;              // exceptions. What SSE would compute then is unspecified here, as nobody sees it
    // Results that overflow or underflow unmasked are scaled by 2^24576 to be in range, as x87's are.
    bool scales_unmasked = false;

    uint8_t raised = 0;       // exceptions, sticky
    uint8_t settled = 0;      // by earlier steps of the same instruction
    bool rounded_up = false;  // the last inexact result, in magnitude

    // Those that a processor reports: where one is found before the computation and unmasked, there is no computation.
    uint8_t reported() const {
        return settled | (raised & unmasked & BEFORE_COMPUTATION ? raised & BEFORE_COMPUTATION : raised);
    }
    // Behind a step of an instruction that has several: whether there is a next one.
    bool goes_on() {
        if (reported() & unmasked) return false;
        settled |= raised;
        raised = 0;
        return true;
    }
};

struct Binary32 {
    uint32_t bits;
    using Word = uint32_t;
    static constexpr int PRECISION = 24, EXPONENT_BITS = 8;
};
struct Binary64 {
    uint64_t bits;
    using Word = uint64_t;
    static constexpr int PRECISION = 53, EXPONENT_BITS = 11;
};
struct Extended {
    uint64_t significand;  // with its integer bit
    uint16_t sign_exponent;
    static constexpr int PRECISION = 64, EXPONENT_BITS = 15;
};
static constexpr Extended EXTENDED_INDEFINITE = {0xc000'0000'0000'0000, 0xffff};

constexpr uint64_t INTEGER_BIT = uint64_t{1} << 63, QUIET_BIT = uint64_t{1} << 62;

template <typename Float>
constexpr bool IS_EXTENDED = Float::PRECISION == 64;

template <typename Float>
constexpr int MAXIMUM_EXPONENT = (1 << (Float::EXPONENT_BITS - 1)) - 1;
template <typename Float>
constexpr int MINIMUM_EXPONENT = 1 - MAXIMUM_EXPONENT<Float>;

// A value taken apart. Finite ones are (-1)^sign * significand * 2^(exponent - 63), with bit 63 set; NaNs have their
// fraction below bit 63, and bit 62 where they are quiet.
struct Unpacked {
    // In order of what decides about a result. UNSUPPORTED: encodings of extended format that no 387 makes.
    enum Kind : uint8_t { IS_ZERO, IS_FINITE, IS_INFINITE, IS_QUIET_NAN, IS_SIGNALLING_NAN, IS_UNSUPPORTED };
    Kind kind = IS_ZERO;
    bool sign = false;
    bool denormal = false;
    int32_t exponent = 0;
    uint64_t significand = 0;

    bool is_nan() const { return kind >= IS_QUIET_NAN; }
};

using Wide = unsigned __int128;

// (-1)^sign * significand * 2^(exponent - 127), with bit 127 set; the last bit is set where there are more behind it.
struct Exact {
    bool sign;
    int32_t exponent;
    Wide significand;
};

// `a` shifted right, its last bit set where bits were lost.
inline Wide shift_right_sticky(Wide a, int bits) {
    if (bits == 0) return a;
    if (bits > 127) return a != 0;
    return a >> bits | (a << (128 - bits) != 0);
}
inline int leading_zeros(uint64_t a) { return a ? __builtin_clzll(a) : 64; }
inline int leading_zeros(Wide a) {
    const auto high = static_cast<uint64_t>(a >> 64);
    return high ? leading_zeros(high) : 64 + leading_zeros(static_cast<uint64_t>(a));
}

// What `dividend` / `divisor` gives, where that fits: the dividend's upper half is less than the divisor.
struct QuotientAndRest {
    uint64_t quotient, rest;
};
inline QuotientAndRest divide_wide(Wide dividend, uint64_t divisor) {
    const auto quotient = static_cast<uint64_t>(dividend / divisor);
    return {quotient, static_cast<uint64_t>(dividend) - quotient * divisor};
}
// From any significand but zero.
inline Exact normalized(bool sign, int32_t exponent, Wide significand) {
    const int zeros = leading_zeros(significand);
    return {sign, exponent - zeros, significand << zeros};
}

// Whether what lies `rest` * 2^-128 above a magnitude goes to the next one; `odd`: the magnitude's last bit.
inline bool rounds_up(Wide rest, bool odd, bool sign, Rounding rounding) {
    constexpr Wide HALF = Wide{1} << 127;
    if (rounding == Rounding::NEAREST) return rest > HALF || (rest == HALF && odd);
    return rest && rounding == (sign ? Rounding::DOWN : Rounding::UP);
}

inline Unpacked infinite(bool sign) { return {.kind = Unpacked::IS_INFINITE, .sign = sign}; }
inline Unpacked zero(bool sign) { return {.kind = Unpacked::IS_ZERO, .sign = sign}; }
inline Unpacked finite(bool sign, int32_t exponent, uint64_t significand) {
    return {.kind = Unpacked::IS_FINITE, .sign = sign, .exponent = exponent, .significand = significand};
}

template <typename Float>
Unpacked unpack(Float value, const FloatContext& context) {
    constexpr int BIAS = MAXIMUM_EXPONENT<Float>, SPECIAL = 2 * BIAS + 1;
    bool sign;
    int biased;
    uint64_t fraction;  // below bit 63
    bool integer_bit;
    if constexpr (IS_EXTENDED<Float>) {
        sign = value.sign_exponent >> 15;
        biased = value.sign_exponent & SPECIAL;
        integer_bit = value.significand >> 63;
        fraction = value.significand & ~INTEGER_BIT;
        if (biased && !integer_bit) return {.kind = Unpacked::IS_UNSUPPORTED, .sign = sign};
    } else {
        constexpr int FRACTION_BITS = Float::PRECISION - 1;
        sign = value.bits >> (FRACTION_BITS + Float::EXPONENT_BITS);
        biased = static_cast<int>(value.bits >> FRACTION_BITS) & SPECIAL;
        integer_bit = biased != 0;
        fraction = static_cast<uint64_t>(value.bits) << (64 - FRACTION_BITS) >> 1;
    }
    if (biased == SPECIAL) {
        if (!fraction) return infinite(sign);
        const auto kind = fraction & QUIET_BIT ? Unpacked::IS_QUIET_NAN : Unpacked::IS_SIGNALLING_NAN;
        return {.kind = kind, .sign = sign, .significand = fraction | INTEGER_BIT};
    }
    if (biased) [[likely]]
        return finite(sign, biased - BIAS, fraction | INTEGER_BIT);
    if (integer_bit) fraction |= INTEGER_BIT;  // a pseudo-denormal
    if (!fraction || context.denormals_are_zeros) return zero(sign);
    const int zeros = leading_zeros(fraction);
    Unpacked result = finite(sign, 1 - BIAS - zeros, fraction << zeros);
    result.denormal = true;
    return result;
}

template <typename Float>
Float pack(const Unpacked& value) {
    constexpr int BIAS = MAXIMUM_EXPONENT<Float>, SPECIAL = 2 * BIAS + 1;
    int biased = SPECIAL;
    uint64_t significand = value.significand;
    if (value.kind == Unpacked::IS_FINITE) biased = significand & INTEGER_BIT ? value.exponent + BIAS : 0;
    if (value.kind == Unpacked::IS_ZERO) biased = 0, significand = 0;
    if (value.kind == Unpacked::IS_INFINITE) significand = INTEGER_BIT;
    if constexpr (IS_EXTENDED<Float>) {
        return {significand, static_cast<uint16_t>(biased | value.sign << 15)};
    } else {
        using Word = typename Float::Word;
        constexpr int FRACTION_BITS = Float::PRECISION - 1;
        const auto fraction = static_cast<Word>(significand << 1 >> (64 - FRACTION_BITS));
        const Word sign = static_cast<Word>(value.sign) << (FRACTION_BITS + Float::EXPONENT_BITS);
        return {static_cast<Word>(sign | static_cast<Word>(biased) << FRACTION_BITS | fraction)};
    }
}

template <typename Float>
Float round_and_pack(const Exact& exact, FloatContext& context);
// What an invalid operation gives, if masked.
template <typename Float>
Float indefinite(FloatContext& context);
// Of an operation with a NaN among its operands.
template <typename Float>
Float propagate(const Unpacked& a, const Unpacked& b, FloatContext& context);

template <typename Float>
Float add(Float a, Float b, FloatContext& context);
template <typename Float>
Float subtract(Float a, Float b, FloatContext& context);
template <typename Float>
Float multiply(Float a, Float b, FloatContext& context);
template <typename Float>
Float divide(Float a, Float b, FloatContext& context);
template <typename Float>
Float square_root(Float a, FloatContext& context);
template <typename Float>
Float round_to_integral(Float a, FloatContext& context);

// Signalling comparisons (COMISD, FCOM) hold any NaN for invalid, quiet ones (UCOMISD, FUCOM) signalling NaNs.
enum class Ordering : uint8_t { LESS, EQUAL, GREATER, UNORDERED };
enum class Comparison : uint8_t { QUIET, SIGNALLING };
template <typename Float>
Ordering compare(Float a, Float b, Comparison comparison, FloatContext& context);

template <typename To, typename From>
To convert(From value, FloatContext& context);

template <typename Float>
Float from_integer(int64_t value, FloatContext& context);
// To `bits` bits; the least of their integers is what is out of range, and what NaNs give.
template <typename Float>
int64_t to_integer(Float value, int bits, Rounding rounding, FloatContext& context);

// 18 decimal digits and a sign, as FBLD and FBSTP have them.
using PackedDecimal = std::array<uint8_t, 10>;
Extended from_decimal(const PackedDecimal& decimal);
PackedDecimal to_decimal(Extended value, FloatContext& context);

// A step of FPREM (TOWARD_ZERO) or FPREM1 (NEAREST): the remainder of the division with a quotient so rounded, exact;
// or, where exponents are too far apart, a dividend with the same remainder, nearer to it.
struct RemainderStep {
    Extended value;
    uint64_t quotient;  // its last bits, of magnitude; of complete ones
    bool complete;
};
RemainderStep remainder_step(Extended a, Extended b, Rounding quotient, FloatContext& context);

}  // namespace perfemu
