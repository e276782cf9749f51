// Instructions on vector and floating-point registers.
#include "address/x86_teller.hpp"
#include "address/x86_vector_operands.hpp"

namespace perfemu::slice {

namespace {
constexpr unsigned FXSAVE_BYTES = 512, XSAVE_HEADER_BYTES = 24;
}

void X86Teller::group_15() {
    unsigned what = insn_.extension();
    if (insn_.in_register()) {
        if (insn_.repeat != 0xf3) return;  // fences
        unsigned size = insn_.rex_w ? 8 : 4, base = what & 1 ? GS_BASE : THREAD_POINTER;
        if (what < 2) set_part(insn_.rm(), size, size == 8 ? whole(base) : builder_.extend(whole(base), 4, false));
        if (what == 2 || what == 3) builder_.set(base, part(insn_.rm(), size));
        return;
    }
    switch (what) {
        case 0: stores(effective(), FXSAVE_BYTES); return;
        case 1: loads(effective(), FXSAVE_BYTES); return;
        case 2: loads(effective(), 4); return;   // LDMXCSR
        case 3: stores(effective(), 4); return;  // STMXCSR
        case 4: xsave(); return;
        case 5: {  // XRSTOR reads the header first
            Address at = effective();
            loads(at.plus(FXSAVE_BYTES), XSAVE_HEADER_BYTES);
            loads(at, FXSAVE_BYTES);
            return;
        }
        case 6:
            if (!insn_.operand_16) xsave();  // XSAVEOPT; with 66 CLWB
            return;
        default: return;  // CLFLUSH
    }
}

// It updates which components are there.
void X86Teller::xsave() {
    Address at = effective(), components = at.plus(FXSAVE_BYTES);
    stores(at, FXSAVE_BYTES);
    loads(components, 8);
    stores(components, 8);
}

void X86Teller::vector() {
    VectorOperand operand = vector_operand(insn_);
    if (insn_.vex) {
        bit_manipulation();
        return;
    }
    if (insn_.in_memory() && operand.size) {
        if (operand.stored) {
            stores(effective(), operand.size);
        } else {
            loads(effective(), operand.size);
        }
    }
    if (writes_general_reg(insn_)) builder_.forget(insn_.reg());
    if (writes_general_rm(insn_)) builder_.forget(insn_.rm());
    if (insn_.map == OpcodeMap::THREE_BYTE_3A && (insn_.opcode & 0xfd) == 0x61) builder_.forget(RCX);  // PCMPxSTRI
    bool compares = (insn_.map == OpcodeMap::TWO_BYTE && (insn_.opcode == 0x2e || insn_.opcode == 0x2f)) ||
                    (insn_.map == OpcodeMap::THREE_BYTE_38 && insn_.opcode == 0x17) ||
                    (insn_.map == OpcodeMap::THREE_BYTE_3A && insn_.opcode >> 4 == 6);
    if (compares) builder_.forget_flags();
}

// Sizes of memory operands by opcode and extension; negative: stored. Intel SDM vol. 2, A.5.
void X86Teller::x87() {
    constexpr int ENVIRONMENT = 28, STATE = 108;
    constexpr int SIZES[8][8] = {
        {4, 4, 4, 4, 4, 4, 4, 4},  // D8
        {4, 0, -4, -4, ENVIRONMENT, 2, -ENVIRONMENT, -2},
        {4, 4, 4, 4, 4, 4, 4, 4},  // DA
        {4, -4, -4, -4, 0, 10, 0, -10},
        {8, 8, 8, 8, 8, 8, 8, 8},  // DC
        {8, -8, -8, -8, STATE, 0, -STATE, -2},
        {2, 2, 2, 2, 2, 2, 2, 2},  // DE
        {2, -2, -2, -2, 10, 8, -10, -8},
    };
    constexpr unsigned DF = 7;
    unsigned row = insn_.opcode & 7;
    if (insn_.in_register()) {
        if (row == DF && insn_.modrm == 0xe0) builder_.forget(RAX);  // FNSTSW AX
        bool compares = (row == 3 || row == DF) && (insn_.extension() == 5 || insn_.extension() == 6);
        if (compares) builder_.forget_flags();  // FCOMI, FUCOMI and with pops
        return;
    }
    int size = SIZES[row][insn_.extension()];
    constexpr int SHORTER = 14, LONGER = 28;  // the 16-bit environment; the engine leaves a gap with REX.W
    bool environment = size == ENVIRONMENT || size == -ENVIRONMENT, state = size == STATE || size == -STATE;
    int more = size_ == 2 ? -SHORTER : size_ == 8 && state ? LONGER : 0;
    if (environment || state) size += size > 0 ? more : -more;
    if (size > 0) loads(effective(), static_cast<unsigned>(size));
    if (size < 0) stores(effective(), static_cast<unsigned>(-size));
}

}  // namespace perfemu::slice
