#include "guest_memory.hpp"
#include "x87_moves.hpp"
#include "x87_state.hpp"

namespace perfemu {
namespace {

// As a new top, if `context` raised nothing that prevents it; a denormal operand does not.
void push_result(const X87& x87, Extended value, const FloatContext& context) {
    x87.begin();
    x87.operand().pushes = false;  // announced for a constant, and done here
    if (!x87.empty(7)) [[unlikely]] {
        if (x87.stack_fault(true)) x87.push(EXTENDED_INDEFINITE);
        return;
    }
    x87.report(context);
    if (!(context.raised & context.unmasked & INVALID_OPERATION)) [[likely]]
        x87.push(value);
}

template <typename Float>
void push_float(Environment* environment, typename Float::Word bits) {
    const X87 x87 = WAITING_X87(environment);
    FloatContext context = x87.context();
    const Extended value = convert<Extended>(Float{bits}, context);
    push_result(x87, value, context);
}

template <typename Integer>
void push_integer(Environment* environment, Integer integer) {
    const X87 x87 = WAITING_X87(environment);
    FloatContext context = x87.context();
    push_result(x87, from_integer<Extended>(integer, context), context);
}

void push_extended(Environment* environment, uint64_t address) {
    const X87 x87 = WAITING_X87(environment);
    const uint64_t significand = guest_memory.load_64(environment, address, HELPER_RETURN_ADDRESS());
    const uint32_t sign_exponent = guest_memory.load_16(environment, address + 8, HELPER_RETURN_ADDRESS());
    push_result(x87, {significand, static_cast<uint16_t>(sign_exponent)}, {});
}

void push_decimal(Environment* environment, uint64_t address) {
    const X87 x87 = WAITING_X87(environment);
    PackedDecimal decimal;
    for (size_t i = 0; i < decimal.size(); i++)
        decimal[i] = static_cast<uint8_t>(guest_memory.load_8(environment, address + i, HELPER_RETURN_ADDRESS()));
    push_result(x87, from_decimal(decimal), {});
}

// As the second operand, signalling if it is: the operation decides.
template <typename Float>
void float_operand(Environment* environment, typename Float::Word bits) {
    const X87 x87 = WAITING_X87(environment);
    const Unpacked value = unpack(Float{bits}, FloatContext{});
    X87::put(x87.operand(), pack<Extended>(value));
    x87.operand().denormal = value.denormal;
    x87.operand().empty = false;
}

void integer_operand(Environment* environment, int32_t integer) {
    const X87 x87 = WAITING_X87(environment);
    FloatContext context;
    X87::put(x87.operand(), from_integer<Extended>(integer, context));
    x87.operand().denormal = x87.operand().empty = false;
}

void zero_operand(Environment* environment) { integer_operand(environment, 0); }

void register_operand(Environment* environment, int i) {
    const X87 x87 = WAITING_X87(environment);
    X87::put(x87.operand(), x87.get(i));
    x87.operand().denormal = false;  // the operation sees for itself
    x87.operand().empty = x87.empty(i);
}

// The first 64 bits of a constant, and whether what follows is more than half of the last: none is exact or a tie.
struct Constant {
    Extended truncated;
    bool above_half;
};
constexpr Constant LOG2_10 = {{0xd49a'784b'cd1b'8afe, 0x4000}, false};
constexpr Constant LOG2_E = {{0xb8aa'3b29'5c17'f0bb, 0x3fff}, true};
constexpr Constant PI = {{0xc90f'daa2'2168'c234, 0x4000}, true};
constexpr Constant LOG10_2 = {{0x9a20'9a84'fbcf'f798, 0x3ffd}, true};
constexpr Constant LOGE_2 = {{0xb172'17f7'd1cf'79ab, 0x3ffe}, true};

template <const Constant& CONSTANT>
void push_constant(Environment* environment) {
    const X87 x87 = WAITING_X87(environment);
    const FloatContext context = x87.context();
    const bool up = context.rounding == Rounding::UP || (context.rounding == Rounding::NEAREST && CONSTANT.above_half);
    push_result(x87, {CONSTANT.truncated.significand + up, CONSTANT.truncated.sign_exponent}, {});
}

template <uint64_t SIGNIFICAND, uint16_t EXPONENT>
void push_exact(Environment* environment) {
    push_result(WAITING_X87(environment), {SIGNIFICAND, EXPONENT}, {});
}

}  // namespace

InstructionFamily x87_load_family() {
    static const EngineReplacement REPLACEMENTS[] = {
        in_place_of("helper_flds_ST0", push_float<Binary32>),
        in_place_of("helper_fldl_ST0", push_float<Binary64>),
        in_place_of("helper_fldt_ST0", push_extended),
        in_place_of("helper_fildl_ST0", push_integer<int32_t>),
        in_place_of("helper_fildll_ST0", push_integer<int64_t>),
        in_place_of("helper_fbld_ST0", push_decimal),
        in_place_of("helper_flds_FT0", float_operand<Binary32>),
        in_place_of("helper_fldl_FT0", float_operand<Binary64>),
        in_place_of("helper_fildl_FT0", integer_operand),
        in_place_of("helper_fldz_FT0", zero_operand),
        in_place_of("helper_fmov_FT0_STN", register_operand),
        in_place_of("helper_fld1_ST0", push_exact<0x8000'0000'0000'0000, 0x3fff>),
        in_place_of("helper_fldz_ST0", push_exact<0, 0>),
        in_place_of("helper_fldl2t_ST0", push_constant<LOG2_10>),
        in_place_of("helper_fldl2e_ST0", push_constant<LOG2_E>),
        in_place_of("helper_fldpi_ST0", push_constant<PI>),
        in_place_of("helper_fldlg2_ST0", push_constant<LOG10_2>),
        in_place_of("helper_fldln2_ST0", push_constant<LOGE_2>),
    };
    return {REPLACEMENTS, [](const Calibration&) { find_guest_memory(); }};
}

}  // namespace perfemu
