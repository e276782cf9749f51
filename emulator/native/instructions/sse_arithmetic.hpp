// ADDPS ... SQRTSD, HADDPS, HSUBPS, ADDSUBPS, DPPS.
#pragma once

#include "families.hpp"

namespace perfemu {

InstructionFamily sse_arithmetic_family();

}  // namespace perfemu
