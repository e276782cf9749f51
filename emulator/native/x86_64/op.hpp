// What an instruction fires when it retires.
#pragma once

#include <span>

#include "ops/op.hpp"
#include "x86_64/instruction.hpp"

namespace perfemu::x86_64 {

// Of the instruction at the front of `bytes`. Bytes that are none become one op that traps.
Op read_op(std::span<const uint8_t> bytes);
// Of an instruction that has been read from so many bytes.
Op op_of(const Instruction& insn, size_t bytes);

}  // namespace perfemu::x86_64
