// Accesses of 16 bytes that must be aligned.
#pragma once

#include "encoding.hpp"
#include "families.hpp"

namespace perfemu {

// Whether a misaligned memory operand of the instruction raises #GP: Intel SDM vol. 2, exception types 1, 2 and 4
// (legacy SSE, 128 bits), but for those that say that they need no alignment.
bool needs_alignment(const Encoding& encoding);

// The next access of the translation at hand is of such an operand.
void align_next_access(bool aligned);

InstructionFamily alignment_family();

}  // namespace perfemu
