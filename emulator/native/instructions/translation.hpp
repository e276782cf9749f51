// Where each instruction of a block is seen before the engine translates it.
#pragma once

#include "instructions/families.hpp"

namespace perfemu {

// Takes the place of the engine's loop over a block's instructions: each is decoded here, and given to the engine with
// what it does not know of it.
InstructionFamily translation_family();

}  // namespace perfemu
