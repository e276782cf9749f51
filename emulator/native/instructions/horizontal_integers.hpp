// PHADDW, PHADDD, PHADDSW, PHSUBW, PHSUBD, PHSUBSW.
#pragma once

#include "instructions/families.hpp"

namespace perfemu {

InstructionFamily horizontal_integer_family();

}  // namespace perfemu
