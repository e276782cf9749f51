// MASKMOVQ and MASKMOVDQU
#pragma once

#include "instructions/families.hpp"

namespace perfemu {

InstructionFamily masked_store_family();

}  // namespace perfemu
