// x86-64's address slices.
//
// Some instructions access what their operands' values choose. They are told as the whole of what they may access:
// MASKMOVQ and MASKMOVDQU (the bytes that the mask selects), FXSAVE, FSAVE, FSTENV and their opposites (which leave out
// reserved bytes), XSAVE and XRSTOR (the components that EDX:EAX selects). Far transfers of control and loads of
// segment registers read descriptor tables, too, of which user programs have none.
#include "slice/compiler.hpp"
#include "x86_64/dataflow.hpp"

namespace perfemu::x86_64 {
namespace {

class X8664Compiler final : public slice::SliceCompiler {
  protected:
    unsigned compile_op(slice::SliceBuilder& builder, uint64_t pc, std::span<const uint8_t> bytes) override {
        const Instruction insn = read_instruction(bytes);
        if (!insn.row) return 0;
        const bool after_sign_extension = sign_extended_size_ != 0 && sign_extended_size_ == insn.operand_size();
        InstructionDataflow(builder, insn, pc, after_sign_extension).build();
        const bool extends = insn.row->dataflow == &InstructionDataflow::convert_sign;
        sign_extended_size_ = extends ? insn.operand_size() : 0;
        return insn.length;
    }

  private:
    unsigned sign_extended_size_ = 0;  // of the instruction before, if it was CDQ or CQO
};

const slice::SliceCompilerRow ROW{"x86_64", [] { return std::unique_ptr<slice::SliceCompiler>(new X8664Compiler); }};

}  // namespace
}  // namespace perfemu::x86_64
