// IDIV of 32 bits, which must not divide on the host what the host cannot.
#pragma once

#include "instructions/families.hpp"

namespace perfemu {

InstructionFamily division_family();

}  // namespace perfemu
