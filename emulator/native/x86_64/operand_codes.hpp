// Names of operands for the rows, as in Intel SDM vol. 2, appendix A.2: where they are, and their size.
#pragma once

#include "x86_64/row.hpp"

namespace perfemu::x86_64::codes {

// E: register or memory by ModRM.rm; G: register by ModRM.reg; Z: register in the opcode; A, C, D: RAX, RCX, RDX.
// b, w, d, q: 1, 2, 4, 8 bytes; v: 2, 4 or 8; y: 4 or 8; s: as the stack has it; o: by the opcode's lowest bit, b or v.
inline constexpr OperandCode Eb{AddressingMethod::RM, Size::BYTE}, Ew{AddressingMethod::RM, Size::WORD},
    Ed{AddressingMethod::RM, Size::DOUBLEWORD}, Eq{AddressingMethod::RM, Size::QUADWORD},
    Ev{AddressingMethod::RM, Size::OPERAND}, Ey{AddressingMethod::RM, Size::WIDE},
    Es{AddressingMethod::RM, Size::STACK}, Eo{AddressingMethod::RM, Size::LOWEST_BIT},
    Ez{AddressingMethod::RM, Size::NARROW}, Em{AddressingMethod::RM, Size::IN_MEMORY};
inline constexpr OperandCode Gd{AddressingMethod::REG, Size::DOUBLEWORD}, Gv{AddressingMethod::REG, Size::OPERAND},
    Gy{AddressingMethod::REG, Size::WIDE}, Go{AddressingMethod::REG, Size::LOWEST_BIT};
inline constexpr OperandCode Zb{AddressingMethod::IN_OPCODE, Size::BYTE},
    Zv{AddressingMethod::IN_OPCODE, Size::OPERAND}, Zs{AddressingMethod::IN_OPCODE, Size::STACK},
    By{AddressingMethod::VEX, Size::WIDE};
inline constexpr OperandCode Ao{AddressingMethod::FIXED_RAX, Size::LOWEST_BIT},
    Av{AddressingMethod::FIXED_RAX, Size::OPERAND}, Aw{AddressingMethod::FIXED_RAX, Size::WORD},
    Cb{AddressingMethod::FIXED_RCX, Size::BYTE};
// Other memory: M with what lies there, X at RSI, Y at RDI, O by an absolute address.
inline constexpr OperandCode M{AddressingMethod::RM, Size::OPERAND}, Mb{AddressingMethod::RM, Size::BYTE},
    Mpair{AddressingMethod::RM, Size::PAIR}, Mpointer{AddressingMethod::RM, Size::POINTER},
    Mtable{AddressingMethod::RM, Size::TABLE}, Menvironment{AddressingMethod::RM, Size::ENVIRONMENT},
    Mstate{AddressingMethod::RM, Size::STATE}, Mfxsave{AddressingMethod::RM, Size::FXSAVE},
    Mt{AddressingMethod::RM, Size::TEN};
inline constexpr OperandCode Xo{AddressingMethod::SOURCE, Size::LOWEST_BIT},
    Yo{AddressingMethod::DESTINATION, Size::LOWEST_BIT}, Oo{AddressingMethod::OFFSET, Size::LOWEST_BIT};
// Immediates; a jump's target; segment, control and x87 registers.
inline constexpr OperandCode Ib{AddressingMethod::IMMEDIATE, Size::BYTE}, Iw{AddressingMethod::IMMEDIATE, Size::WORD},
    Iz{AddressingMethod::IMMEDIATE, Size::OPERAND}, Iv{AddressingMethod::IMMEDIATE, Size::FULL},
    Io{AddressingMethod::IMMEDIATE, Size::LOWEST_BIT}, Ib2{AddressingMethod::SECOND_IMMEDIATE, Size::BYTE},
    Jb{AddressingMethod::TARGET, Size::BYTE}, Jz{AddressingMethod::TARGET, Size::OPERAND},
    Sw{AddressingMethod::OTHER, Size::WORD}, Cq{AddressingMethod::OTHER, Size::QUADWORD},
    ST{AddressingMethod::OTHER, Size::TEN};
// V, W: XMM registers by ModRM.reg, and by ModRM.rm or memory; P, Q: MMX registers; PV, QW: either, by 66.
// x: all; d, q: 4, 8 bytes of it; f: by the prefix, all, 4 or 8.
inline constexpr OperandCode Vx{AddressingMethod::VECTOR_REG, Size::SIXTEEN},
    Wx{AddressingMethod::VECTOR_RM, Size::SIXTEEN}, Ww{AddressingMethod::VECTOR_RM, Size::WORD},
    Wd{AddressingMethod::VECTOR_RM, Size::DOUBLEWORD}, Wq{AddressingMethod::VECTOR_RM, Size::QUADWORD},
    Wf{AddressingMethod::VECTOR_RM, Size::SCALAR};
inline constexpr OperandCode P{AddressingMethod::MMX_REG, Size::QUADWORD}, Q{AddressingMethod::MMX_RM, Size::QUADWORD};
inline constexpr OperandCode PV{AddressingMethod::LANES_REG, Size::LANES}, QW{AddressingMethod::LANES_RM, Size::LANES};

}  // namespace perfemu::x86_64::codes
