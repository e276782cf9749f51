// What x86-64 instructions do to general registers, flags and memory. Opcodes: Intel SDM vol. 2, appendix A.
//
// As the engine executes them: its accesses are held against its MEM hooks by a test, instruction by instruction.
//
// Some instructions access what their operands' values choose. They are told as the whole of what they may access:
// MASKMOVQ and MASKMOVDQU (the bytes that the mask selects), FXSAVE, FSAVE, FSTENV and their opposites (which leave out
// reserved bytes), XSAVE and XRSTOR (the components that EDX:EAX selects). Far transfers of control and loads of
// segment registers read descriptor tables, too, of which user programs have none.
#include "address/slice_compiler.hpp"
#include "address/x86_instruction.hpp"
#include "address/x86_teller.hpp"

namespace perfemu::slice {
namespace {

class X8664Compiler final : public SliceCompiler {
  protected:
    unsigned compile_op(SliceBuilder& builder, uint64_t pc, std::span<const uint8_t> bytes) override {
        X86Instruction insn = read_x86_instruction(bytes);
        bool after_sign_extension = sign_extended_size_ != 0 && sign_extended_size_ == insn.operand_size();
        if (insn.length) X86Teller(builder, insn, pc, after_sign_extension).tell();
        constexpr uint8_t CDQ = 0x99;
        bool extends = insn.map == OpcodeMap::ONE_BYTE && insn.opcode == CDQ;
        sign_extended_size_ = extends ? insn.operand_size() : 0;
        return insn.length;
    }

  private:
    unsigned sign_extended_size_ = 0;  // of the instruction before, if it was CDQ or CQO
};

const SliceCompilerRow ROW{"x86_64", [] { return std::unique_ptr<SliceCompiler>(new X8664Compiler); }};

}  // namespace
}  // namespace perfemu::slice
