#include "instructions/sse_conversion.hpp"

#include <array>

#include "instructions/host_arithmetic.hpp"

namespace perfemu {
namespace {

// One element: Binary32 <-> Binary64.
template <typename To, typename From>
To convert_element(From value, uint32_t control, FloatContext& context) {
    const auto result = from_host<To>(static_cast<HostFloat<To>>(to_host(value)));
    const bool widens = sizeof(To) > sizeof(From);
    const bool right = widens
                           ? is_ordinary(value)
                           : is_zero(value) || (inexact_is_known(control) && is_normal(value) && is_normal(result, 1));
    return right ? result : convert<To>(value, context);
}

// CVTPS2PD, CVTPD2PS, CVTSS2SD, CVTSD2SS; the packed ones write the whole register.
template <typename To, typename From, int COUNT, bool PACKED>
void convert_elements(Environment* environment, Vector* destination, const Vector* source) {
    const uint32_t control = mxcsr(environment);
    FloatContext context = float_context(control);
    std::array<To, COUNT> results;
    for (int i = 0; i < COUNT; i++) results[i] = convert_element<To>(element<From>(*source, i), control, context);
    report(environment, context, HELPER_RETURN_ADDRESS());
    if (PACKED) *destination = {};
    for (int i = 0; i < COUNT; i++) set_element(*destination, i, results[i]);
}

// What a helper returns does not reach the register that it is for if it does not return.
template <typename Float, typename Integer>
Integer to_integer_element(Float value, uint32_t control, Rounding rounding, FloatContext& context) {
    constexpr int BITS = 8 * sizeof(Integer);
    constexpr auto END = static_cast<HostFloat<Float>>(uint64_t{1} << (BITS - 2)) * 2;  // 2^(BITS-1)
    const auto host = to_host(value);
    if (rounding == Rounding::TOWARD_ZERO && is_ordinary(value) && host > -END && host < END) {
        const auto result = static_cast<Integer>(host);
        if (inexact_is_known(control) || static_cast<HostFloat<Float>>(result) == host) return result;
    }
    return static_cast<Integer>(to_integer(value, BITS, rounding, context));
}

struct Truncating {
    static Rounding rounding(const FloatContext&) { return Rounding::TOWARD_ZERO; }
};
struct AsControlled {
    static Rounding rounding(const FloatContext& context) { return context.rounding; }
};

// CVTSS2SI, CVTTSD2SI ...
template <typename Mode, typename Float, typename Integer>
Integer to_general(Environment* environment, const Vector* source) {
    const uint32_t control = mxcsr(environment);
    FloatContext context = float_context(control);
    const auto result =
        to_integer_element<Float, Integer>(element<Float>(*source, 0), control, Mode::rounding(context), context);
    report(environment, context, HELPER_RETURN_ADDRESS());
    return result;
}

// CVTPS2DQ, CVTTPD2DQ, CVTPS2PI ... SIZE: of the destination, which is written whole.
template <typename Mode, typename Float, int COUNT, int SIZE>
void to_integers(Environment* environment, Vector* destination, const Vector* source) {
    const uint32_t control = mxcsr(environment);
    FloatContext context = float_context(control);
    Vector results{};
    for (int i = 0; i < COUNT; i++)
        results.doublewords[i] = static_cast<uint32_t>(
            to_integer_element<Float, int32_t>(element<Float>(*source, i), control, Mode::rounding(context), context));
    report(environment, context, HELPER_RETURN_ADDRESS());
    for (int i = 0; i < SIZE / 8; i++) destination->quadwords[i] = results.quadwords[i];
}

template <typename Float>
Float from_integer_element(int64_t value, FloatContext& context) {
    const auto host = static_cast<HostFloat<Float>>(value);
    constexpr int64_t EXACT = int64_t{1} << Float::PRECISION;
    return value >= -EXACT && value <= EXACT ? from_host<Float>(host) : from_integer<Float>(value, context);
}

// CVTSI2SS ...
template <typename Float, typename Integer>
void from_general(Environment* environment, Vector* destination, std::make_unsigned_t<Integer> value) {
    FloatContext context = float_context(mxcsr(environment));
    const auto result = from_integer_element<Float>(static_cast<Integer>(value), context);
    report(environment, context, HELPER_RETURN_ADDRESS());
    set_element(*destination, 0, result);
}

// CVTDQ2PS, CVTDQ2PD, CVTPI2PS, CVTPI2PD
template <typename Float, int COUNT>
void from_integers(Environment* environment, Vector* destination, const Vector* source) {
    FloatContext context = float_context(mxcsr(environment));
    std::array<Float, COUNT> results;
    for (int i = 0; i < COUNT; i++)
        results[i] = from_integer_element<Float>(static_cast<int32_t>(source->doublewords[i]), context);
    report(environment, context, HELPER_RETURN_ADDRESS());
    for (int i = 0; i < COUNT; i++) set_element(*destination, i, results[i]);
}

// Intel SDM vol. 2, ROUNDPD, "Rounding Modes and Encoding of Rounding Control (RC) Field".
template <typename Float, int COUNT>
void round_elements(Environment* environment, Vector* destination, const Vector* source, uint32_t mode) {
    constexpr uint32_t ROUNDING = 3, AS_CONTROLLED = 4, HIDES_INEXACT = 8;
    FloatContext context = float_context(mxcsr(environment));
    if (!(mode & AS_CONTROLLED)) context.rounding = static_cast<Rounding>(mode & ROUNDING);
    std::array<Float, COUNT> results;
    for (int i = 0; i < COUNT; i++) results[i] = round_to_integral(element<Float>(*source, i), context);
    if (mode & HIDES_INEXACT) context.raised &= static_cast<uint8_t>(~INEXACT_RESULT);
    context.raised &= static_cast<uint8_t>(~DENORMAL_OPERAND);
    report(environment, context, HELPER_RETURN_ADDRESS());
    for (int i = 0; i < COUNT; i++) set_element(*destination, i, results[i]);
}

}  // namespace

InstructionFamily sse_conversion_family() {
    static const EngineReplacement HELPERS[] = {
        in_place_of("helper_cvtps2pd", convert_elements<Binary64, Binary32, 2, true>),
        in_place_of("helper_cvtpd2ps", convert_elements<Binary32, Binary64, 2, true>),
        in_place_of("helper_cvtss2sd", convert_elements<Binary64, Binary32, 1, false>),
        in_place_of("helper_cvtsd2ss", convert_elements<Binary32, Binary64, 1, false>),
        in_place_of("helper_cvtdq2ps", from_integers<Binary32, 4>),
        in_place_of("helper_cvtdq2pd", from_integers<Binary64, 2>),
        in_place_of("helper_cvtpi2ps", from_integers<Binary32, 2>),
        in_place_of("helper_cvtpi2pd", from_integers<Binary64, 2>),
        in_place_of("helper_cvtsi2ss", from_general<Binary32, int32_t>),
        in_place_of("helper_cvtsi2sd", from_general<Binary64, int32_t>),
        in_place_of("helper_cvtsq2ss", from_general<Binary32, int64_t>),
        in_place_of("helper_cvtsq2sd", from_general<Binary64, int64_t>),
        in_place_of("helper_cvtps2dq", to_integers<AsControlled, Binary32, 4, 16>),
        in_place_of("helper_cvtpd2dq", to_integers<AsControlled, Binary64, 2, 16>),
        in_place_of("helper_cvttps2dq", to_integers<Truncating, Binary32, 4, 16>),
        in_place_of("helper_cvttpd2dq", to_integers<Truncating, Binary64, 2, 16>),
        in_place_of("helper_cvtps2pi", to_integers<AsControlled, Binary32, 2, 8>),
        in_place_of("helper_cvtpd2pi", to_integers<AsControlled, Binary64, 2, 8>),
        in_place_of("helper_cvttps2pi", to_integers<Truncating, Binary32, 2, 8>),
        in_place_of("helper_cvttpd2pi", to_integers<Truncating, Binary64, 2, 8>),
        in_place_of("helper_cvtss2si", to_general<AsControlled, Binary32, int32_t>),
        in_place_of("helper_cvtsd2si", to_general<AsControlled, Binary64, int32_t>),
        in_place_of("helper_cvttss2si", to_general<Truncating, Binary32, int32_t>),
        in_place_of("helper_cvttsd2si", to_general<Truncating, Binary64, int32_t>),
        in_place_of("helper_cvtss2sq", to_general<AsControlled, Binary32, int64_t>),
        in_place_of("helper_cvtsd2sq", to_general<AsControlled, Binary64, int64_t>),
        in_place_of("helper_cvttss2sq", to_general<Truncating, Binary32, int64_t>),
        in_place_of("helper_cvttsd2sq", to_general<Truncating, Binary64, int64_t>),
        in_place_of("helper_roundps_xmm", round_elements<Binary32, 4>),
        in_place_of("helper_roundpd_xmm", round_elements<Binary64, 2>),
        in_place_of("helper_roundss_xmm", round_elements<Binary32, 1>),
        in_place_of("helper_roundsd_xmm", round_elements<Binary64, 1>),
    };
    return {HELPERS};
}

}  // namespace perfemu
