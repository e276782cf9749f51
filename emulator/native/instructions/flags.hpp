// What user mode may change of RFLAGS.
#pragma once

#include "families.hpp"

namespace perfemu {

InstructionFamily flags_family();

}  // namespace perfemu
