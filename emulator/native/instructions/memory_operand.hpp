// How the memory operands of vector instructions are accessed: aligned or not, and how much of them.
#pragma once

#include "instructions/encoding.hpp"
#include "instructions/families.hpp"

namespace perfemu {

struct MemoryOperand {
    // A misaligned one raises #GP: Intel SDM vol. 2, exception types 1, 2 and 4 (legacy SSE, 128 bits), but for those
    // that say that they need no alignment.
    bool aligned = false;
    // The engine loads 16 bytes where the instruction has a source of this many; 0: it does not.
    uint8_t bytes = 0;
    // 16 bytes that may lie in two pages: nothing is done where one half faults.
    bool halves = false;
};
MemoryOperand memory_operand(const Encoding& encoding);

// The accesses of the instruction that is translated next are of that operand.
void access_as(MemoryOperand operand);

InstructionFamily memory_operand_family();

}  // namespace perfemu
