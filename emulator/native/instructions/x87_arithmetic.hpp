// x87's operations on registers: basic arithmetic, comparisons, remainders.
#pragma once

#include "instructions/families.hpp"

namespace perfemu {

InstructionFamily x87_arithmetic_family();
InstructionFamily x87_comparison_family();

}  // namespace perfemu
