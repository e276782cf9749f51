#include "instructions/x87_arithmetic.hpp"

#include <algorithm>

#include "instructions/x87_state.hpp"

namespace perfemu {
namespace {

// What computes, and what does of normal numbers.
struct Operation {
    Extended (*compute)(Extended, Extended, FloatContext&);
    bool (*compute_normal)(Extended, Extended, NormalResult&);
};
constexpr Operation ADD = {add<Extended>, add_normal}, SUBTRACT = {subtract<Extended>, subtract_normal},
                    MULTIPLY = {multiply<Extended>, multiply_normal}, DIVIDE = {divide<Extended>, divide_normal};

// Of two registers that are not empty, into ST(i); false where it has done nothing.
template <const Operation& OPERATION>
inline bool of_normal_numbers(X87 x87, Extended first, Extended second, unsigned i) {
    NormalResult result;
    if (!x87.is_default() || !OPERATION.compute_normal(first, second, result)) [[unlikely]]
        return false;
    x87.begin_with(result);
    x87.replace(i, result.value);
    return true;
}

// Of the second operand: what it was before it was converted counts where the operation gets so far as to look at it.
void note_converted(const X87& x87, Extended other, FloatContext& context) {
    if (!x87.operand().denormal || context.raised & (INVALID_OPERATION | ZERO_DIVIDE)) return;
    if (!unpack(other, context).is_nan()) context.raised |= DENORMAL_OPERAND;
}

// ST(0) and the operand, in that order or the other one.
template <const Operation& OPERATION, bool REVERSED>
[[gnu::noinline]] void with_any_operand(X87 x87) {
    x87.begin();
    if (x87.empty(0) || x87.operand().empty) {
        if (x87.stack_fault(false)) x87.set(0, EXTENDED_INDEFINITE);
        return;
    }
    FloatContext context = x87.context();
    const Extended top = x87.get(0), operand = x87.operand().value();
    const Extended result =
        REVERSED ? OPERATION.compute(operand, top, context) : OPERATION.compute(top, operand, context);
    note_converted(x87, top, context);
    if (x87.report(context)) x87.set(0, result);
}

template <const Operation& OPERATION, bool REVERSED = false>
void with_operand(Environment* environment) {
    const X87 x87 = WAITING_X87(environment);
    const X87Slot& operand = x87.operand();
    const Extended top = x87.get(0);
    const bool special = x87.empty(0) || operand.empty || operand.denormal;
    const bool done = !special && (REVERSED ? of_normal_numbers<OPERATION>(x87, operand.value(), top, 0)
                                            : of_normal_numbers<OPERATION>(x87, top, operand.value(), 0));
    if (!done) [[unlikely]]
        with_any_operand<OPERATION, REVERSED>(x87);
}

// ST(i) and ST(0), in that order or the other one.
template <const Operation& OPERATION, bool REVERSED>
[[gnu::noinline]] void with_any_top(X87 x87, unsigned i) {
    x87.begin();
    if (x87.empty(0) || x87.empty(i)) {
        if (x87.stack_fault(false)) x87.set(i, EXTENDED_INDEFINITE);
        return;
    }
    FloatContext context = x87.context();
    const Extended top = x87.get(0), other = x87.get(i);
    const Extended result = REVERSED ? OPERATION.compute(top, other, context) : OPERATION.compute(other, top, context);
    if (x87.report(context)) x87.set(i, result);
}

template <const Operation& OPERATION, bool REVERSED = false>
void with_top(Environment* environment, int number) {
    const X87 x87 = WAITING_X87(environment);
    const auto i = static_cast<unsigned>(number);
    const Extended top = x87.get(0), other = x87.get(i);
    const bool special = x87.empty(0) || x87.empty(i);
    const bool done = !special && (REVERSED ? of_normal_numbers<OPERATION>(x87, top, other, i)
                                            : of_normal_numbers<OPERATION>(x87, other, top, i));
    if (!done) [[unlikely]]
        with_any_top<OPERATION, REVERSED>(x87, i);
}

Extended root(Extended value, FloatContext& context) { return square_root(value, context); }
Extended rounded(Extended value, FloatContext& context) { return round_to_integral(value, context); }

template <Extended OPERATION(Extended, FloatContext&)>
void of_top(Environment* environment) {
    const X87 x87 = WAITING_X87(environment);
    x87.begin();
    if (x87.empty(0)) {
        if (x87.stack_fault(false)) x87.set(0, EXTENDED_INDEFINITE);
        return;
    }
    FloatContext context = x87.context();
    const Extended result = OPERATION(x87.get(0), context);
    if (x87.report(context)) x87.set(0, result);
}

// ST(0) * 2^ST(1), of ST(1) without its fraction.
Extended scale(Extended value, Extended by, FloatContext& context) {
    constexpr int LARGEST = 0x10000;  // from any value out of range, however scaled
    const Unpacked a = unpack(value, context), b = unpack(by, context);
    if (a.is_nan() || b.is_nan()) return propagate<Extended>(a, b, context);
    if (b.kind == Unpacked::IS_INFINITE) {
        const auto invalid = b.sign ? Unpacked::IS_INFINITE : Unpacked::IS_ZERO;
        if (a.kind == invalid) return indefinite<Extended>(context);
        if (a.denormal) context.raised |= DENORMAL_OPERAND;
        return pack<Extended>({.kind = b.sign ? Unpacked::IS_ZERO : Unpacked::IS_INFINITE, .sign = a.sign});
    }
    if (a.denormal || b.denormal) context.raised |= DENORMAL_OPERAND;
    if (a.kind != Unpacked::IS_FINITE) return value;
    FloatContext integer;
    const int64_t wanted = b.kind == Unpacked::IS_FINITE && b.exponent > 16
                               ? (b.sign ? -LARGEST : LARGEST)
                               : to_integer(by, 32, Rounding::TOWARD_ZERO, integer);
    const auto by_exponent = static_cast<int32_t>(std::clamp<int64_t>(wanted, -LARGEST, LARGEST));
    return round_and_pack<Extended>({a.sign, a.exponent + by_exponent, static_cast<Wide>(a.significand) << 64},
                                    context);
}

void scale_top(Environment* environment) {
    const X87 x87 = WAITING_X87(environment);
    x87.begin();
    if (x87.empty(0) || x87.empty(1)) {
        if (x87.stack_fault(false)) x87.set(0, EXTENDED_INDEFINITE);
        return;
    }
    FloatContext context = x87.whole_context();
    const Extended result = scale(x87.get(0), x87.get(1), context);
    if (x87.report(context)) x87.set(0, result);
}

struct Parts {
    Extended exponent, significand;
};

Parts extract(Extended value, FloatContext& context) {
    Unpacked a = unpack(value, context);
    if (a.is_nan()) {
        const Extended nan = propagate<Extended>(a, a, context);
        return {nan, nan};
    }
    if (a.kind == Unpacked::IS_INFINITE) return {pack<Extended>({.kind = Unpacked::IS_INFINITE}), value};
    if (a.kind == Unpacked::IS_ZERO) {
        context.raised |= ZERO_DIVIDE;
        return {pack<Extended>({.kind = Unpacked::IS_INFINITE, .sign = true}), value};
    }
    if (a.denormal) context.raised |= DENORMAL_OPERAND;
    const Extended exponent = from_integer<Extended>(a.exponent, context);
    a.exponent = 0;
    return {exponent, pack<Extended>(a)};
}

void extract_parts(Environment* environment) {
    const X87 x87 = WAITING_X87(environment);
    x87.begin();
    const bool underflow = x87.empty(0);
    if (underflow || !x87.empty(7)) {
        if (!x87.stack_fault(!underflow)) return;
        x87.set(0, EXTENDED_INDEFINITE);
        x87.push(EXTENDED_INDEFINITE);
        return;
    }
    FloatContext context = x87.context();
    const Parts parts = extract(x87.get(0), context);
    if (!x87.report(context)) return;
    x87.set(0, parts.exponent);
    x87.push(parts.significand);
}

template <Rounding QUOTIENT>
void remainder_of_top(Environment* environment) {
    const X87 x87 = WAITING_X87(environment);
    x87.begin();
    x87.status() &= static_cast<uint16_t>(~CONDITION_2);
    if (x87.empty(0) || x87.empty(1)) {
        if (x87.stack_fault(false)) x87.set(0, EXTENDED_INDEFINITE);
        return;
    }
    FloatContext context = x87.whole_context();
    const RemainderStep step = remainder_step(x87.get(0), x87.get(1), QUOTIENT, context);
    if (!x87.report(context)) return;
    x87.set(0, step.value);
    if (unpack(step.value, context).is_nan()) return;
    x87.status() &= static_cast<uint16_t>(~ORDER_CONDITIONS);
    if (!step.complete) {
        x87.status() |= CONDITION_2;
        return;
    }
    if (step.quotient & 1) x87.status() |= CONDITION_1;
    if (step.quotient & 2) x87.status() |= CONDITION_3;
    if (step.quotient & 4) x87.status() |= CONDITION_0;
}

}  // namespace

InstructionFamily x87_arithmetic_family() {
    static const EngineReplacement REPLACEMENTS[] = {
        in_place_of("helper_fadd_ST0_FT0", with_operand<ADD>),
        in_place_of("helper_fmul_ST0_FT0", with_operand<MULTIPLY>),
        in_place_of("helper_fsub_ST0_FT0", with_operand<SUBTRACT>),
        in_place_of("helper_fsubr_ST0_FT0", with_operand<SUBTRACT, true>),
        in_place_of("helper_fdiv_ST0_FT0", with_operand<DIVIDE>),
        in_place_of("helper_fdivr_ST0_FT0", with_operand<DIVIDE, true>),
        in_place_of("helper_fadd_STN_ST0", with_top<ADD>),
        in_place_of("helper_fmul_STN_ST0", with_top<MULTIPLY>),
        in_place_of("helper_fsub_STN_ST0", with_top<SUBTRACT>),
        in_place_of("helper_fsubr_STN_ST0", with_top<SUBTRACT, true>),
        in_place_of("helper_fdiv_STN_ST0", with_top<DIVIDE>),
        in_place_of("helper_fdivr_STN_ST0", with_top<DIVIDE, true>),
        in_place_of("helper_fsqrt", of_top<root>),
        in_place_of("helper_frndint", of_top<rounded>),
        in_place_of("helper_fscale", scale_top),
        in_place_of("helper_fxtract", extract_parts),
        in_place_of("helper_fprem", remainder_of_top<Rounding::TOWARD_ZERO>),
        in_place_of("helper_fprem1", remainder_of_top<Rounding::NEAREST>),
    };
    return {REPLACEMENTS, calibrate_x87};
}

}  // namespace perfemu
