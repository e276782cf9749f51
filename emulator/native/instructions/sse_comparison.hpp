// CMPPS, COMISS, UCOMISS, MINPS, MAXPS and their kin.
#pragma once

#include "instructions/families.hpp"

namespace perfemu {

InstructionFamily sse_comparison_family();

}  // namespace perfemu
