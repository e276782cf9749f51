// x87's exponentials, logarithms and trigonometric functions.
#pragma once

#include "instructions/families.hpp"

namespace perfemu {

InstructionFamily x87_transcendental_family();

}  // namespace perfemu
