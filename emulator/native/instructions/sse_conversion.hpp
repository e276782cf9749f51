// CVTSI2SD, CVTPS2DQ, CVTSD2SS, ROUNDPS and their kin.
#pragma once

#include "instructions/families.hpp"

namespace perfemu {

InstructionFamily sse_conversion_family();

}  // namespace perfemu
