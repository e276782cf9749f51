// CMPPS, COMISS, UCOMISS, MINPS, MAXPS and their kin.
#pragma once

#include "families.hpp"

namespace perfemu {

InstructionFamily sse_comparison_family();

}  // namespace perfemu
