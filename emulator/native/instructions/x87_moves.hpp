// x87's loads, stores, constants and moves between registers.
#pragma once

#include "instructions/environment.hpp"
#include "instructions/families.hpp"

namespace perfemu {

constexpr uint64_t EXTENDED_BYTES = 10;  // in memory

// The helper of FLD ST(i) and FCMOVcc; what that of FSTP ST(i) is told of FSTPNCE besides.
constexpr int UNCHECKED_STORE = 8;
void move_to_top(Environment* environment, int i);

InstructionFamily x87_load_family();
InstructionFamily x87_store_family();
InstructionFamily x87_register_family();

}  // namespace perfemu
