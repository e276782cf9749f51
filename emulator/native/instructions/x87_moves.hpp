// x87's loads, stores, constants and moves between registers.
#pragma once

#include "families.hpp"

namespace perfemu {

constexpr uint64_t EXTENDED_BYTES = 10;  // in memory

InstructionFamily x87_load_family();
InstructionFamily x87_store_family();
InstructionFamily x87_register_family();

}  // namespace perfemu
