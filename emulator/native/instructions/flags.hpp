// What user mode may change of RFLAGS.
#pragma once

#include "instructions/families.hpp"

namespace perfemu {

InstructionFamily flags_family();

}  // namespace perfemu
