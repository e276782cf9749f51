// Segment registers, as Linux's descriptor table lets user mode load them.
#pragma once

#include <span>

#include "instructions/executed.hpp"
#include "instructions/families.hpp"

namespace perfemu {

// MOV to and from SS and from CS, of which Linux has one selector each.
std::span<const ExecutedRow> segment_rows();

// All other loads of segment registers.
InstructionFamily segment_family();

}  // namespace perfemu
