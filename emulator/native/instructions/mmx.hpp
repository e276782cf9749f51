// MMX registers are the x87's: what every MMX instruction does to the x87's state besides.
#pragma once

#include "instructions/encoding.hpp"
#include "instructions/families.hpp"

namespace perfemu {

// The way of translations to call a helper.
using EmitCall = void(void* context, void* function, void* result, int count, void** arguments);

// Around the translation of an instruction, and at each call of a helper in it, before that is emitted; true: in its
// place is another.
void begin_mmx(const Encoding& encoding);
bool emit_mmx_call(EmitCall* emit, void* context, void* function, int count, void** arguments);
void end_mmx();

InstructionFamily mmx_family();

}  // namespace perfemu
