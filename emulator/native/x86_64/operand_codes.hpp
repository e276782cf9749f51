// Names of operands for the rows, as in Intel SDM vol. 2, appendix A.2: where they are, and their size.
#pragma once

#include "x86_64/row.hpp"

namespace perfemu::x86_64::codes {

// E: register or memory by ModRM.rm; G: register by ModRM.reg; Z: register in the opcode; A, C, D: RAX, RCX, RDX.
// b, w, d, q: 1, 2, 4, 8 bytes; v: 2, 4 or 8; y: 4 or 8; s: as the stack has it; o: by the opcode's lowest bit, b or v.
inline constexpr OperandCode Eb{Place::RM, Size::BYTE}, Ew{Place::RM, Size::WORD}, Ed{Place::RM, Size::DOUBLEWORD},
    Eq{Place::RM, Size::QUADWORD}, Ev{Place::RM, Size::OPERAND}, Ey{Place::RM, Size::WIDE}, Es{Place::RM, Size::STACK},
    Eo{Place::RM, Size::LOWEST_BIT}, Ez{Place::RM, Size::NARROW}, Em{Place::RM, Size::IN_MEMORY};
inline constexpr OperandCode Gd{Place::REG, Size::DOUBLEWORD}, Gv{Place::REG, Size::OPERAND},
    Gy{Place::REG, Size::WIDE}, Go{Place::REG, Size::LOWEST_BIT};
inline constexpr OperandCode Zb{Place::IN_OPCODE, Size::BYTE}, Zv{Place::IN_OPCODE, Size::OPERAND},
    Zs{Place::IN_OPCODE, Size::STACK}, By{Place::VEX, Size::WIDE};
inline constexpr OperandCode Ao{Place::FIXED_RAX, Size::LOWEST_BIT}, Av{Place::FIXED_RAX, Size::OPERAND},
    Aw{Place::FIXED_RAX, Size::WORD}, Cb{Place::FIXED_RCX, Size::BYTE};
// Other memory: M with what lies there, X at RSI, Y at RDI, O by an absolute address.
inline constexpr OperandCode M{Place::RM, Size::OPERAND}, Mb{Place::RM, Size::BYTE}, Mpair{Place::RM, Size::PAIR},
    Mpointer{Place::RM, Size::POINTER}, Mtable{Place::RM, Size::TABLE}, Menvironment{Place::RM, Size::ENVIRONMENT},
    Mstate{Place::RM, Size::STATE}, Mfxsave{Place::RM, Size::FXSAVE}, Mt{Place::RM, Size::TEN};
inline constexpr OperandCode Xo{Place::SOURCE, Size::LOWEST_BIT}, Yo{Place::DESTINATION, Size::LOWEST_BIT},
    Oo{Place::OFFSET, Size::LOWEST_BIT};
// Immediates; a jump's target; segment, control and x87 registers.
inline constexpr OperandCode Ib{Place::IMMEDIATE, Size::BYTE}, Iw{Place::IMMEDIATE, Size::WORD},
    Iz{Place::IMMEDIATE, Size::OPERAND}, Iv{Place::IMMEDIATE, Size::FULL}, Io{Place::IMMEDIATE, Size::LOWEST_BIT},
    Ib2{Place::SECOND_IMMEDIATE, Size::BYTE}, Jb{Place::TARGET, Size::BYTE}, Jz{Place::TARGET, Size::OPERAND},
    Sw{Place::OTHER, Size::WORD}, Cq{Place::OTHER, Size::QUADWORD}, ST{Place::OTHER, Size::TEN};
// V, W: XMM registers by ModRM.reg, and by ModRM.rm or memory; P, Q: MMX registers; PV, QW: either, by 66.
// x: all; d, q: 4, 8 bytes of it; f: by the prefix, all, 4 or 8.
inline constexpr OperandCode Vx{Place::VECTOR_REG, Size::SIXTEEN}, Wx{Place::VECTOR_RM, Size::SIXTEEN},
    Ww{Place::VECTOR_RM, Size::WORD}, Wd{Place::VECTOR_RM, Size::DOUBLEWORD}, Wq{Place::VECTOR_RM, Size::QUADWORD},
    Wf{Place::VECTOR_RM, Size::SCALAR};
inline constexpr OperandCode P{Place::MMX_REG, Size::QUADWORD}, Q{Place::MMX_RM, Size::QUADWORD};
inline constexpr OperandCode PV{Place::LANES_REG, Size::LANES}, QW{Place::LANES_RM, Size::LANES};

}  // namespace perfemu::x86_64::codes
