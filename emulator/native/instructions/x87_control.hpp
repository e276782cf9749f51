// x87's control and status words, and what saves and restores the whole state.
#pragma once

#include "instructions/families.hpp"

namespace perfemu {

InstructionFamily x87_control_family();

}  // namespace perfemu
