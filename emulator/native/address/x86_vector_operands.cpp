#include "address/x86_vector_operands.hpp"

namespace perfemu::slice {
namespace {

// For the variants without prefix, with 66, F3, F2: bytes, negative if they are stored, 0 if there is no such operand.
struct Row {
    uint8_t first, last;  // opcodes
    int8_t sizes[4];
};

// Intel SDM vol. 2, appendix A, table A-3.
constexpr Row TWO_BYTE[] = {
    {0x10, 0x10, {16, 16, 4, 8}},                                    // MOVUPS, MOVUPD, MOVSS, MOVSD
    {0x11, 0x11, {-16, -16, -4, -8}}, {0x12, 0x12, {8, 8, 16, 8}},   // MOVLPS, MOVLPD, MOVSLDUP, MOVDDUP
    {0x13, 0x13, {-8, -8, 0, 0}},     {0x14, 0x15, {16, 16, 0, 0}},  // UNPCK
    {0x16, 0x16, {8, 8, 16, 0}},                                     // MOVHPS, MOVHPD, MOVSHDUP
    {0x17, 0x17, {-8, -8, 0, 0}},     {0x28, 0x28, {16, 16, 0, 0}},  // MOVAPS
    {0x29, 0x29, {-16, -16, 0, 0}},   {0x2a, 0x2a, {8, 8, 0, 0}},    // CVTPI2PS; the scalar ones read general operands
    {0x2b, 0x2b, {-16, -16, -4, -8}},                                // MOVNTPS
    {0x2c, 0x2d, {16, 16, 4, 8}},                                    // CVTTPS2PI ..., which needs 8 bytes
    {0x2e, 0x2f, {4, 8, 0, 0}},                                      // UCOMISS, COMISS ...
    {0x51, 0x51, {16, 16, 4, 8}},                                    // SQRT
    {0x52, 0x53, {16, 0, 4, 0}},                                     // RSQRTPS, RCPPS
    {0x54, 0x57, {16, 16, 0, 0}},                                    // logic
    {0x58, 0x59, {16, 16, 4, 8}},                                    // ADD, MUL
    {0x5a, 0x5a, {16, 16, 4, 8}},                                    // CVTPS2PD needs 8 bytes
    {0x5b, 0x5b, {16, 16, 16, 0}},    {0x5c, 0x5f, {16, 16, 4, 8}},
    {0x60, 0x6b, {8, 16, 0, 0}},  // the engine's PUNPCKL reads 8 and 16 bytes
    {0x6c, 0x6d, {0, 16, 0, 0}},      {0x6f, 0x6f, {8, 16, 16, 0}},
    {0x70, 0x70, {8, 16, 16, 16}},    {0x74, 0x76, {8, 16, 0, 0}},
    {0x7c, 0x7d, {0, 16, 0, 16}},     {0x7e, 0x7e, {0, 0, 8, 0}},  // MOVQ
    {0x7f, 0x7f, {-8, -16, -16, 0}},  {0xc2, 0xc2, {16, 16, 4, 8}},
    {0xc6, 0xc6, {16, 16, 0, 0}},     {0xd0, 0xd0, {0, 16, 0, 16}},
    {0xd1, 0xd3, {8, 16, 0, 0}},      {0xd4, 0xd5, {8, 16, 0, 0}},
    {0xd6, 0xd6, {0, -8, 0, 0}},                                      // MOVQ
    {0xd8, 0xe5, {8, 16, 0, 0}},      {0xe6, 0xe6, {0, 16, 16, 16}},  // CVTDQ2PD needs 8 bytes
    {0xe7, 0xe7, {-8, -16, 0, 0}},                                    // MOVNTQ, MOVNTDQ
    {0xe8, 0xef, {8, 16, 0, 0}},      {0xf0, 0xf0, {0, 0, 0, 16}},    // LDDQU
    {0xf1, 0xf6, {8, 16, 0, 0}},      {0xf8, 0xfe, {8, 16, 0, 0}},
};
constexpr Row THREE_BYTE_38[] = {
    {0x00, 0x0b, {8, 16, 0, 0}}, {0x10, 0x10, {0, 16, 0, 0}}, {0x14, 0x15, {0, 16, 0, 0}}, {0x17, 0x17, {0, 16, 0, 0}},
    {0x1c, 0x1e, {8, 16, 0, 0}}, {0x20, 0x20, {0, 8, 0, 0}},  {0x21, 0x21, {0, 4, 0, 0}},  {0x22, 0x22, {0, 2, 0, 0}},
    {0x23, 0x23, {0, 8, 0, 0}},  {0x24, 0x24, {0, 4, 0, 0}},  {0x25, 0x25, {0, 8, 0, 0}},  {0x28, 0x29, {0, 16, 0, 0}},
    {0x2a, 0x2b, {0, 16, 0, 0}}, {0x30, 0x30, {0, 8, 0, 0}},  {0x31, 0x31, {0, 4, 0, 0}},  {0x32, 0x32, {0, 2, 0, 0}},
    {0x33, 0x33, {0, 8, 0, 0}},  {0x34, 0x34, {0, 4, 0, 0}},  {0x35, 0x35, {0, 8, 0, 0}},  {0x37, 0x41, {0, 16, 0, 0}},
    {0xdb, 0xdf, {0, 16, 0, 0}},
};
constexpr Row THREE_BYTE_3A[] = {
    {0x08, 0x09, {0, 16, 0, 0}}, {0x0a, 0x0b, {0, 16, 0, 0}}, {0x0c, 0x0e, {0, 16, 0, 0}}, {0x0f, 0x0f, {8, 16, 0, 0}},
    {0x14, 0x14, {0, -1, 0, 0}}, {0x15, 0x15, {0, -2, 0, 0}}, {0x17, 0x17, {0, -4, 0, 0}}, {0x20, 0x20, {0, 1, 0, 0}},
    {0x21, 0x21, {0, 4, 0, 0}},  {0x40, 0x42, {0, 16, 0, 0}}, {0x44, 0x44, {0, 16, 0, 0}}, {0x60, 0x63, {0, 16, 0, 0}},
    {0xdf, 0xdf, {0, 16, 0, 0}},
};

std::span<const Row> rows(OpcodeMap map) {
    switch (map) {
        case OpcodeMap::TWO_BYTE: return TWO_BYTE;
        case OpcodeMap::THREE_BYTE_38: return THREE_BYTE_38;
        case OpcodeMap::THREE_BYTE_3A: return THREE_BYTE_3A;
        default: return {};
    }
}

// MOVD and PINSRD, PEXTRD: of the size of a general operand.
bool moves_general(const X86Instruction& insn) {
    bool two = insn.map == OpcodeMap::TWO_BYTE && (insn.opcode == 0x6e || insn.opcode == 0x7e) && insn.variant() < 2;
    bool three = insn.map == OpcodeMap::THREE_BYTE_3A && (insn.opcode == 0x16 || insn.opcode == 0x22);
    return two || three;
}

}  // namespace

VectorOperand vector_operand(const X86Instruction& insn) {
    unsigned variant = insn.variant();
    bool two = insn.map == OpcodeMap::TWO_BYTE;
    bool general_source = two && insn.opcode == 0x2a && variant >= 2;  // CVTSI2SS, CVTSI2SD
    if (moves_general(insn) || general_source) {
        uint8_t size = insn.rex_w ? 8 : 4;
        bool stored = insn.map == OpcodeMap::TWO_BYTE ? insn.opcode == 0x7e : insn.opcode == 0x16;
        return {size, stored};
    }
    if (two && insn.opcode == 0xc4) return {2, false};  // PINSRW
    for (const Row& row : rows(insn.map)) {
        if (insn.opcode < row.first || insn.opcode > row.last) continue;
        int size = row.sizes[variant];
        return {static_cast<uint8_t>(size < 0 ? -size : size), size < 0};
    }
    return {};
}

bool writes_general_reg(const X86Instruction& insn) {
    if (insn.map != OpcodeMap::TWO_BYTE) return false;
    switch (insn.opcode) {
        case 0x2c:
        case 0x2d: return insn.variant() >= 2;  // CVTSS2SI ...
        case 0x50:                              // MOVMSKPS
        case 0xc5:                              // PEXTRW
        case 0xd7: return true;                 // PMOVMSKB
        default: return false;
    }
}

bool writes_general_rm(const X86Instruction& insn) {
    if (!insn.in_register()) return false;
    if (insn.map == OpcodeMap::TWO_BYTE) return insn.opcode == 0x7e && insn.variant() < 2;      // MOVD
    return insn.map == OpcodeMap::THREE_BYTE_3A && insn.opcode >= 0x14 && insn.opcode <= 0x17;  // PEXTR, EXTRACTPS
}

}  // namespace perfemu::slice
