// RCPPS and RSQRTPS, whose approximations are the maker's own.
#pragma once

#include "families.hpp"

namespace perfemu {

InstructionFamily reciprocal_family();

}  // namespace perfemu
