#include "instructions/x87_arithmetic.hpp"
#include "instructions/x87_state.hpp"

namespace perfemu {
namespace {

// By Ordering.
constexpr uint16_t CONDITIONS[] = {CONDITION_0, CONDITION_3, 0, ORDER_CONDITIONS};
constexpr uint64_t FLAGS[] = {CARRY, ZERO, 0, ZERO | PARITY | CARRY};

// ST(0) and the operand. What is invalid is unordered, even where the exception is not masked.
Ordering compare_top(const X87& x87, Comparison comparison) {
    if (x87.empty(0) || x87.operand().empty) {
        x87.stack_fault(false);
        return Ordering::UNORDERED;
    }
    const X87Slot& operand = x87.operand();
    Ordering ordering;
    if (!operand.denormal && compare_normal(x87.get(0), operand.value(), ordering)) [[likely]]
        return ordering;
    FloatContext context = x87.context();
    ordering = compare(x87.get(0), operand.value(), comparison, context);
    if (operand.denormal && ordering != Ordering::UNORDERED) context.raised |= DENORMAL_OPERAND;
    x87.report(context);
    return ordering;
}

template <Comparison COMPARISON>
void to_conditions(Environment* environment) {
    const X87 x87 = WAITING_X87(environment);
    x87.begin();
    const uint16_t conditions = CONDITIONS[static_cast<int>(compare_top(x87, COMPARISON))];
    x87.status() = static_cast<uint16_t>((x87.status() & ~ORDER_CONDITIONS) | conditions);
}

// All that are of arithmetic; those that are no part of the order are cleared.
template <Comparison COMPARISON>
void to_flags(Environment* environment) {
    const X87 x87 = WAITING_X87(environment);
    flags_source(environment) = FLAGS[static_cast<int>(compare_top(x87, COMPARISON))];
}

// FXAM: by what the value is; C1 is its sign.
void examine(Environment* environment) {
    static constexpr uint16_t NAN_CLASS = CONDITION_0, NORMAL = CONDITION_2, INFINITE = CONDITION_0 | CONDITION_2,
                              ZERO_CLASS = CONDITION_3, EMPTY = CONDITION_0 | CONDITION_3,
                              DENORMAL_CLASS = CONDITION_2 | CONDITION_3;
    // By Unpacked::Kind.
    static constexpr uint16_t CLASSES[] = {ZERO_CLASS, NORMAL, INFINITE, NAN_CLASS, NAN_CLASS, 0};
    const X87 x87 = WAITING_X87(environment);
    const Unpacked value = unpack(x87.get(0), FloatContext{});
    const uint16_t kind = x87.empty(0) ? EMPTY : value.denormal ? DENORMAL_CLASS : CLASSES[value.kind];
    x87.status() &= static_cast<uint16_t>(~(ORDER_CONDITIONS | CONDITION_1));
    x87.status() |= static_cast<uint16_t>(kind | (x87.get(0).sign_exponent >> 15 ? CONDITION_1 : 0));
}

}  // namespace

InstructionFamily x87_comparison_family() {
    static const EngineReplacement REPLACEMENTS[] = {
        in_place_of("helper_fcom_ST0_FT0", to_conditions<Comparison::SIGNALLING>),
        in_place_of("helper_fucom_ST0_FT0", to_conditions<Comparison::QUIET>),
        in_place_of("helper_fcomi_ST0_FT0", to_flags<Comparison::SIGNALLING>),
        in_place_of("helper_fucomi_ST0_FT0", to_flags<Comparison::QUIET>),
        in_place_of("helper_fxam_ST0", examine),
    };
    return {REPLACEMENTS};
}

}  // namespace perfemu
