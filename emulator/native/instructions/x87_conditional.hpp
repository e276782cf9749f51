// FCMOVcc, and FSTPNCE, for which the engine has helpers that know too little of them.
#pragma once

#include <optional>

#include "instructions/encoding.hpp"
#include "instructions/families.hpp"
#include "instructions/mmx.hpp"
#include "instructions/x87_state.hpp"

namespace perfemu {

// The instruction as a number, if it is one: ST(i), and under which condition.
std::optional<int> conditional_move(const Encoding& encoding);

// FCMOVcc is translated as FUCOMI, which has the flags of RFLAGS stored first, and calls a helper for the operand and
// one to compare: in the place of these is a call of the move. FSTPNCE's helper is FSTP's, which is told that it does
// not look for stack faults. Around the translation of an instruction, and at each call of a helper, before that is
// emitted; true: in its place is another.
void begin_conditional_move(const Encoding& encoding);
void end_conditional_move();
bool emit_conditional_move(EmitCall* emit, void* context, void* function, int count, void** arguments);

// Executes FCMOVcc; `move`: as `conditional_move` has it.
void move_conditionally(X87 x87, Environment* environment, int move);

InstructionFamily x87_conditional_family();

}  // namespace perfemu
