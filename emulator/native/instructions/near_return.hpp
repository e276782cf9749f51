// RET with an immediate, which the engine takes as signed.
#pragma once

#include "instructions/encoding.hpp"
#include "instructions/families.hpp"

namespace perfemu {

// Between these two the instruction is translated.
void begin_near_return(const Encoding& encoding);
void end_near_return();

InstructionFamily near_return_family();

}  // namespace perfemu
