#include "instructions/x87_transcendental.hpp"

#include "instructions/elementary.hpp"
#include "instructions/x87_state.hpp"

namespace perfemu {
namespace {

using Kind = Unpacked::Kind;
constexpr Kind IS_ZERO = Unpacked::IS_ZERO, IS_FINITE = Unpacked::IS_FINITE, IS_INFINITE = Unpacked::IS_INFINITE;
constexpr int LIMIT_OF_ANGLES = 63;  // |x| < 2^63

Extended rounded(const Exact& exact, FloatContext& context) { return round_and_pack<Extended>(exact, context); }
Extended packed(const Unpacked& value) { return pack<Extended>(value); }
Exact negated_if(bool negates, const Exact& a) { return {a.sign != negates, a.exponent, a.significand}; }

void note_denormals(const Unpacked& a, FloatContext& context) {
    if (a.denormal) context.raised |= DENORMAL_OPERAND;
}

// --- functions of ST(0) ---

Extended exponential(Extended value, FloatContext& context) {
    const Unpacked x = unpack(value, context);
    if (x.is_nan()) return propagate<Extended>(x, x, context);
    note_denormals(x, context);
    if (x.kind == IS_ZERO) return value;
    if (x.kind == IS_INFINITE) return x.sign ? packed(finite(true, 0, INTEGER_BIT)) : value;
    if (x.exponent < 0) return rounded(exponential_minus_one(x), context);
    context.raised |= INEXACT_RESULT;  // as processors have it, also of 1 and -1
    if (x.sign && x.exponent == 0 && x.significand == INTEGER_BIT) return packed(finite(true, -1, INTEGER_BIT));
    return value;  // 1, and what the instruction is not for
}

void exponential_of_top(Environment* environment) {
    const X87 x87 = WAITING_X87(environment);
    x87.begin();
    if (x87.empty(0)) {
        if (x87.stack_fault(false)) x87.set(0, EXTENDED_INDEFINITE);
        return;
    }
    FloatContext context = x87.whole_context();
    const Extended result = exponential(x87.get(0), context);
    if (x87.report(context)) x87.set(0, result);
}

// --- functions of ST(0) and ST(1), which replace both ---

// y * what the logarithm of x is where it is no number to compute with: 0 or infinite.
Extended times_special(const Unpacked& y, Kind logarithm, bool sign, FloatContext& context) {
    if ((y.kind == IS_ZERO && logarithm == IS_INFINITE) || (y.kind == IS_INFINITE && logarithm == IS_ZERO))
        return indefinite<Extended>(context);
    note_denormals(y, context);
    return packed({.kind = logarithm, .sign = sign != y.sign});
}

// y * a logarithm that is a number but 0.
Extended times(const Unpacked& y, const Exact& logarithm, FloatContext& context) {
    if (y.kind != IS_FINITE) return packed({.kind = y.kind, .sign = y.sign != logarithm.sign});
    const Extended result = rounded(product(exact(y), logarithm), context);
    if (!(context.raised & INEXACT_RESULT)) {  // processors say so of powers of two as well
        context.raised |= INEXACT_RESULT;
        if (unpack(result, context).denormal) context.raised |= NUMERIC_UNDERFLOW;
    }
    return result;
}

// ST(1) * log2(ST(0)). Intel SDM vol. 2, FYL2X.
Extended logarithm_product(Extended second, Extended first, FloatContext& context) {
    const Unpacked y = unpack(second, context), x = unpack(first, context);
    if (x.is_nan() || y.is_nan()) return propagate<Extended>(y, x, context);
    if (x.kind == IS_ZERO) {
        if (y.kind == IS_FINITE) {
            context.raised |= ZERO_DIVIDE;
            return packed(infinite(!y.sign));
        }
        return times_special(y, IS_INFINITE, true, context);
    }
    if (x.sign) return indefinite<Extended>(context);
    if (x.kind == IS_INFINITE) return times_special(y, IS_INFINITE, false, context);
    if (x.exponent == 0 && x.significand == INTEGER_BIT) return times_special(y, IS_ZERO, false, context);
    note_denormals(x, context);
    note_denormals(y, context);
    return times(y, logarithm(x), context);
}

// ST(1) * log2(1 + ST(0)).
Extended logarithm_of_one_plus_product(Extended second, Extended first, FloatContext& context) {
    const Unpacked y = unpack(second, context), x = unpack(first, context);
    if (x.is_nan() || y.is_nan()) return propagate<Extended>(y, x, context);
    if (x.kind == IS_ZERO) return times_special(y, IS_ZERO, x.sign, context);
    if (x.kind == IS_INFINITE)
        return x.sign ? indefinite<Extended>(context) : times_special(y, IS_INFINITE, false, context);
    note_denormals(x, context);
    note_denormals(y, context);
    if (x.sign && x.exponent >= 0) {  // not what the instruction is for: as AMD has it
        if (y.kind != IS_FINITE) return packed({.kind = y.kind, .sign = !y.sign});
        context.raised |= INEXACT_RESULT;
        return first;
    }
    return times(y, logarithm_of_one_plus(x), context);
}

// The angle of ST(0), ST(1).
Extended arctangent(Extended second, Extended first, FloatContext& context) {
    const Unpacked y = unpack(second, context), x = unpack(first, context);
    if (x.is_nan() || y.is_nan()) return propagate<Extended>(y, x, context);
    note_denormals(x, context);
    note_denormals(y, context);
    const bool along = y.kind == IS_ZERO || (x.kind == IS_INFINITE && y.kind != IS_INFINITE);
    if (along) return x.sign ? rounded(quarters_of_pi(y.sign, 4), context) : packed(zero(y.sign));
    if (x.kind == IS_INFINITE) return rounded(quarters_of_pi(y.sign, x.sign ? 3 : 1), context);
    if (y.kind == IS_INFINITE || x.kind == IS_ZERO) return rounded(quarters_of_pi(y.sign, 2), context);
    return rounded(angle_of(y, x), context);
}

template <Extended FUNCTION(Extended, Extended, FloatContext&)>
void of_both(Environment* environment) {
    const X87 x87 = WAITING_X87(environment);
    x87.begin();
    const bool fault = x87.empty(0) || x87.empty(1);
    FloatContext context = x87.whole_context();
    const Extended result = fault ? EXTENDED_INDEFINITE : FUNCTION(x87.get(1), x87.get(0), context);
    if (fault ? !x87.stack_fault(false) : !x87.report(context)) return;
    x87.set(1, result);
    x87.pop();
}

// --- trigonometric functions of ST(0) ---

struct Angle {
    Unpacked value;
    ReducedAngle reduced;
};

Extended sine_of(const Angle& angle, FloatContext& context) {
    if (angle.value.kind == IS_ZERO) return packed(angle.value);
    const auto [rest, quadrant] = angle.reduced;
    return rounded(negated_if(quadrant & 2, quadrant & 1 ? cosine(rest) : sine(rest)), context);
}

Extended cosine_of(const Angle& angle, FloatContext& context) {
    if (angle.value.kind == IS_ZERO) return packed(finite(false, 0, INTEGER_BIT));
    const auto [rest, quadrant] = angle.reduced;
    return rounded(negated_if((quadrant + 1) & 2, quadrant & 1 ? sine(rest) : cosine(rest)), context);
}

Extended tangent_of(const Angle& angle, FloatContext& context) {
    if (angle.value.kind == IS_ZERO) return packed(angle.value);
    const auto [rest, quadrant] = angle.reduced;
    const Exact y = sine(rest), x = cosine(rest);
    return rounded(inexact(quadrant & 1 ? negated_if(true, quotient(x, y)) : quotient(y, x)), context);
}

Extended one(const Angle&, FloatContext&) { return packed(finite(false, 0, INTEGER_BIT)); }

using Function = Extended(const Angle&, FloatContext&);

// ST(0) becomes the first function of it; the second one, if there is one, is pushed then. C2 says that the angle is
// too large.
void trigonometric(const X87& x87, Function* first, Function* pushed) {
    x87.begin();
    const bool underflow = x87.empty(0);
    if (underflow || (pushed && !x87.empty(7))) {
        x87.status() &= static_cast<uint16_t>(~CONDITION_2);
        if (!x87.stack_fault(!underflow)) return;
        x87.set(0, EXTENDED_INDEFINITE);
        if (pushed) x87.push(EXTENDED_INDEFINITE);
        return;
    }
    FloatContext context = x87.whole_context();
    const Unpacked value = unpack(x87.get(0), context);
    if (value.kind == IS_FINITE && value.exponent >= LIMIT_OF_ANGLES) {
        x87.status() |= CONDITION_2;
        return;
    }
    x87.status() &= static_cast<uint16_t>(~CONDITION_2);
    Extended result, other;
    if (value.is_nan() || value.kind == IS_INFINITE) {
        result = value.is_nan() ? propagate<Extended>(value, value, context) : indefinite<Extended>(context);
        other = result;
    } else {
        note_denormals(value, context);
        const Angle angle = {value, value.kind == IS_ZERO ? ReducedAngle{} : reduce_angle(value)};
        if (pushed) other = pushed(angle, context);
        result = first(angle, context);
    }
    if (!x87.report(context)) return;
    x87.set(0, result);
    if (pushed) x87.push(other);
}

template <Function FIRST, Function* PUSHED = nullptr>
void trigonometric_of_top(Environment* environment) {
    trigonometric(WAITING_X87(environment), FIRST, PUSHED);
}

}  // namespace

InstructionFamily x87_transcendental_family() {
    static const EngineReplacement REPLACEMENTS[] = {
        in_place_of("helper_f2xm1", exponential_of_top),
        in_place_of("helper_fyl2x", of_both<logarithm_product>),
        in_place_of("helper_fyl2xp1", of_both<logarithm_of_one_plus_product>),
        in_place_of("helper_fpatan", of_both<arctangent>),
        in_place_of("helper_fsin", trigonometric_of_top<sine_of>),
        in_place_of("helper_fcos", trigonometric_of_top<cosine_of>),
        in_place_of("helper_fsincos", trigonometric_of_top<sine_of, cosine_of>),
        in_place_of("helper_fptan", trigonometric_of_top<tangent_of, one>),
    };
    return {REPLACEMENTS};
}

}  // namespace perfemu
