#include "instructions/x87_conditional.hpp"
#include "instructions/x87_moves.hpp"
#include "instructions/x87_state.hpp"

namespace perfemu {
namespace {

// The next helper of this instruction, which computes the result, pushes it.
void announce_push(Environment* environment) { WAITING_X87(environment).operand().pushes = true; }

void pop(Environment* environment) {
    const X87 x87(environment);
    if (!x87.abandoned()) x87.pop();
}

[[gnu::noinline]] void push_at_fault(X87 x87, bool overflow) {
    if (x87.stack_fault(overflow)) x87.push(EXTENDED_INDEFINITE);
}

void from_top(Environment* environment, int i) {
    const X87 x87 = WAITING_X87(environment);
    x87.begin();
    const bool fault = x87.empty(0);
    if (fault && i & UNCHECKED_STORE) return;  // it only pops
    if (fault && !x87.stack_fault(false)) return;
    x87.set(static_cast<unsigned>(i), fault ? EXTENDED_INDEFINITE : x87.get(0));
}

[[gnu::noinline]] void exchange_empty(X87 x87, unsigned i) {
    if (!x87.stack_fault(false)) return;
    const Extended top = x87.empty(0) ? EXTENDED_INDEFINITE : x87.get(0);
    const Extended other = x87.empty(i) ? EXTENDED_INDEFINITE : x87.get(i);
    x87.set(0, other);
    x87.set(i, top);
}

void exchange(Environment* environment, int i) {
    const X87 x87 = WAITING_X87(environment);
    x87.begin();
    if (x87.empty(0) || x87.empty(i)) [[unlikely]]
        return exchange_empty(x87, i);
    const Extended top = x87.get(0);
    x87.replace(0, x87.get(i));
    x87.replace(i, top);
}

// FCHS, FABS.
template <uint16_t KEPT, uint16_t TOGGLED>
void change_sign(Environment* environment) {
    const X87 x87 = WAITING_X87(environment);
    x87.begin();
    const bool fault = x87.empty(0);
    if (fault && !x87.stack_fault(false)) return;
    Extended value = x87.get(0);
    value.sign_exponent = static_cast<uint16_t>((value.sign_exponent & KEPT) ^ TOGGLED);
    x87.set(0, fault ? EXTENDED_INDEFINITE : value);
}

template <uint32_t STEP>
void turn(Environment* environment) {
    const X87 x87 = WAITING_X87(environment);
    x87.begin();
    x87.top() = (x87.top() + STEP) & 7;
}

void release(Environment* environment, int i) {
    const X87 x87 = WAITING_X87(environment);
    x87.begin();
    x87.tags()[(x87.top() + i) & 7] = 1;
}

}  // namespace

// FLD ST(i), `i` counted from the top to be; and FCMOVcc.
void move_to_top(Environment* environment, int i) {
    const X87 x87 = WAITING_X87(environment);
    if (!x87.operand().pushes) return move_conditionally(x87, environment, i);
    x87.operand().pushes = false;
    x87.begin();
    const unsigned source = static_cast<unsigned>(i - 1) & 7;
    const bool underflow = x87.empty(source);
    if (underflow || !x87.empty(7)) [[unlikely]]
        return push_at_fault(x87, !underflow);
    x87.push(x87.get(source));
}

InstructionFamily x87_register_family() {
    constexpr uint16_t SIGN = 0x8000, MAGNITUDE = 0x7fff;
    static const EngineReplacement REPLACEMENTS[] = {
        in_place_of("helper_fpush", announce_push),
        in_place_of("helper_fpop", pop),
        in_place_of("helper_fmov_ST0_STN", move_to_top),
        in_place_of("helper_fmov_STN_ST0", from_top),
        in_place_of("helper_fxchg_ST0_STN", exchange),
        in_place_of("helper_fchs_ST0", change_sign<SIGN | MAGNITUDE, SIGN>),
        in_place_of("helper_fabs_ST0", change_sign<MAGNITUDE, 0>),
        in_place_of("helper_fincstp", turn<1>),
        in_place_of("helper_fdecstp", turn<7>),
        in_place_of("helper_ffree_STN", release),
    };
    return {REPLACEMENTS};
}

}  // namespace perfemu
