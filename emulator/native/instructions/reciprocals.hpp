// RCPPS and RSQRTPS, whose approximations are the maker's own.
#pragma once

#include "instructions/families.hpp"

namespace perfemu {

InstructionFamily reciprocal_family();

}  // namespace perfemu
