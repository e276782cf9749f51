#include "instructions/guest_memory.hpp"
#include "instructions/x87_moves.hpp"
#include "instructions/x87_state.hpp"

namespace perfemu {
namespace {

// Whether there is room for a new top; else the stack fault is dealt with.
bool begin_push(const X87& x87) {
    x87.begin();
    x87.operand().pushes = false;  // announced for a constant, and done here
    if (x87.empty(7)) [[likely]]
        return true;
    if (x87.stack_fault(true)) x87.push(EXTENDED_INDEFINITE);
    return false;
}

// What raised nothing.
void push_value(const X87& x87, Extended value) {
    if (begin_push(x87)) x87.push(value);
}

// As a new top, if `context` raised nothing that prevents it; a denormal operand does not.
void push_result(const X87& x87, Extended value, const FloatContext& context) {
    if (!begin_push(x87)) return;
    x87.report(context);
    if (!(context.raised & context.unmasked & INVALID_OPERATION)) [[likely]]
        x87.push(value);
}

template <typename Float>
void push_float(Environment* environment, typename Float::Word bits) {
    const X87 x87 = WAITING_X87(environment);
    Extended value;
    if (widen_normal(Float{bits}, value)) [[likely]] {
        push_value(x87, value);
        return;
    }
    FloatContext context = x87.context();
    value = convert<Extended>(Float{bits}, context);
    push_result(x87, value, context);
}

// Exact, and without regard to precision control.
Extended integer_value(int64_t integer) {
    if (!integer) return {};
    const bool sign = integer < 0;
    const auto magnitude = sign ? -static_cast<uint64_t>(integer) : static_cast<uint64_t>(integer);
    const int zeros = leading_zeros(magnitude);
    return {magnitude << zeros, static_cast<uint16_t>((sign ? SIGN_BIT : 0) | (EXTENDED_BIAS + 63 - zeros))};
}

template <typename Integer>
void push_integer(Environment* environment, Integer integer) {
    const X87 x87 = WAITING_X87(environment);
    push_value(x87, integer_value(integer));
}

void push_extended(Environment* environment, uint64_t address) {
    const X87 x87 = WAITING_X87(environment);
    Extended value;
    if (const uint8_t* host = in_host(environment, address, EXTENDED_BYTES, AccessType::LOAD)) [[likely]] {
        std::memcpy(&value.significand, host, 8);
        std::memcpy(&value.sign_exponent, host + 8, 2);
    } else {
        value.significand = guest_memory.load_64(environment, address, HELPER_RETURN_ADDRESS());
        const uint32_t second = guest_memory.load_16(environment, address + 8, HELPER_RETURN_ADDRESS());
        value.sign_exponent = static_cast<uint16_t>(second);
    }
    push_value(x87, value);
}

void push_decimal(Environment* environment, uint64_t address) {
    const X87 x87 = WAITING_X87(environment);
    PackedDecimal decimal;
    for (size_t i = 0; i < decimal.size(); i++)
        decimal[i] = static_cast<uint8_t>(guest_memory.load_8(environment, address + i, HELPER_RETURN_ADDRESS()));
    push_value(x87, from_decimal(decimal));
}

// As the second operand, signalling if it is: the operation decides.
template <typename Float>
void float_operand(Environment* environment, typename Float::Word bits) {
    const X87 x87 = WAITING_X87(environment);
    X87Slot& operand = x87.operand();
    operand.denormal = operand.empty = false;
    Extended normal;
    if (widen_normal(Float{bits}, normal)) [[likely]] {
        X87::put(operand, normal);
        return;
    }
    const Unpacked value = unpack(Float{bits}, FloatContext{});
    X87::put(operand, pack<Extended>(value));
    operand.denormal = value.denormal;
}

void integer_operand(Environment* environment, int32_t integer) {
    const X87 x87 = WAITING_X87(environment);
    X87::put(x87.operand(), integer_value(integer));
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
    push_value(x87, {CONSTANT.truncated.significand + up, CONSTANT.truncated.sign_exponent});
}

template <uint64_t SIGNIFICAND, uint16_t EXPONENT>
void push_exact(Environment* environment) {
    push_value(WAITING_X87(environment), {SIGNIFICAND, EXPONENT});
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
