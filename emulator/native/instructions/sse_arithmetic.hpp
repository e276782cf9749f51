// ADDPS ... SQRTSD, HADDPS, HSUBPS, ADDSUBPS, DPPS.
#pragma once

#include "instructions/families.hpp"

namespace perfemu {

InstructionFamily sse_arithmetic_family();

}  // namespace perfemu
