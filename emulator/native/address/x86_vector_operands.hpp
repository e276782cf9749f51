// Memory operands of x86's MMX and SSE instructions.
#pragma once

#include "address/x86_instruction.hpp"

namespace perfemu::slice {

struct VectorOperand {
    uint8_t size = 0;  // bytes; 0: the instruction is not one of these
    bool stored = false;
};

// As the engine accesses them, which reads 16 bytes (8 in MMX registers) for some instructions that need fewer.
VectorOperand vector_operand(const X86Instruction& insn);
// Whether it writes the general register that its ModRM.reg names, or with `rm` that of ModRM.rm.
bool writes_general_reg(const X86Instruction& insn);
bool writes_general_rm(const X86Instruction& insn);

}  // namespace perfemu::slice
