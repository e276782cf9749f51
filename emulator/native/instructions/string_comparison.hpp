// PCMPESTRI, PCMPESTRM, PCMPISTRI, PCMPISTRM.
#pragma once

#include "instructions/families.hpp"

namespace perfemu {

InstructionFamily string_comparison_family();

}  // namespace perfemu
