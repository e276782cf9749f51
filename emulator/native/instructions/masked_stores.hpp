// MASKMOVQ and MASKMOVDQU
#pragma once

#include "families.hpp"

namespace perfemu {

InstructionFamily masked_store_family();

}  // namespace perfemu
