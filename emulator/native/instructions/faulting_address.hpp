// The address whose page the engine did not find: its hook tells the page alone.
#pragma once

#include <cstdint>

#include "instructions/families.hpp"

namespace perfemu {

// Of this thread's x86-64 engines, the last. Of an access that crosses pages, the second page's is its first byte.
uint64_t faulting_address();

InstructionFamily faulting_address_family();

}  // namespace perfemu
