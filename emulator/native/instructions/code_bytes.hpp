// What the engine's translator reads as code.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "instructions/families.hpp"

namespace perfemu {

// Until the next call, it reads `bytes` at `address` instead of what is there; none: nothing else. What is really there
// ends with the byte at `last`, which has to be executable.
void present_code(std::span<const uint8_t> bytes, uint64_t address = 0, uint64_t last = 0);

InstructionFamily code_bytes_family();

}  // namespace perfemu
