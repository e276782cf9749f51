#include "address/x86_instruction.hpp"

#include <algorithm>

namespace perfemu::slice {
namespace {

constexpr size_t LONGEST = 15;
constexpr uint8_t REGISTERS = 0xc0;  // in ModRM

class Reader {
  public:
    explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes.first(std::min(bytes.size(), LONGEST))) {}
    bool complete() const { return complete_; }
    size_t at() const { return at_; }
    uint8_t peek(size_t ahead = 0) {
        complete_ &= at_ + ahead < bytes_.size();
        return complete_ ? bytes_[at_ + ahead] : 0;
    }
    uint8_t byte() {
        uint8_t value = peek();
        at_++;
        return value;
    }
    // Little-endian, sign-extended.
    int64_t number(unsigned size) {
        uint64_t value = 0;
        for (unsigned i = 0; i < size; i++) value |= uint64_t{byte()} << 8 * i;
        unsigned above = 64 - 8 * size;
        return size ? static_cast<int64_t>(value << above) >> above : 0;
    }

  private:
    std::span<const uint8_t> bytes_;
    size_t at_ = 0;
    bool complete_ = true;
};

bool prefix(uint8_t byte, X86Instruction& insn) {
    switch (byte) {
        case 0x66: insn.operand_16 = true; return true;
        case 0x67: insn.address_32 = true; return true;
        case 0xf0: insn.locked = true; return true;
        case 0xf2: insn.repeat = insn.repeat ? insn.repeat : byte; return true;
        case 0xf3: insn.repeat = byte; return true;
        case 0x64: insn.segment = X86Segment::FS; return true;
        case 0x65: insn.segment = X86Segment::GS; return true;
        case 0x26:
        case 0x2e:
        case 0x36:
        case 0x3e: insn.segment = X86Segment::NONE; return true;
        default: return false;
    }
}

void set_rex(X86Instruction& insn, uint8_t rex) {
    insn.has_rex = true;
    insn.rex_w = rex & 8;
    insn.rex_r = rex & 4;
    insn.rex_x = rex & 2;
    insn.rex_b = rex & 1;
}

// Intel SDM vol. 2, 2.3.5: C5 RvvvvLpp, C4 RXBmmmmm WvvvvLpp, all register bits inverted.
void read_vex(X86Instruction& insn, Reader& reader, bool three_bytes) {
    uint8_t first = reader.byte();
    uint8_t last = three_bytes ? reader.byte() : first;
    insn.vex = insn.has_rex = true;
    insn.rex_r = !(first & 0x80);
    insn.rex_x = three_bytes && !(first & 0x40);
    insn.rex_b = three_bytes && !(first & 0x20);
    insn.rex_w = three_bytes && last & 0x80;
    insn.vex_register = ~(last >> 3) & 15;
    uint8_t map = three_bytes ? first & 31 : 1;
    insn.map = map == 2 ? OpcodeMap::THREE_BYTE_38 : map == 3 ? OpcodeMap::THREE_BYTE_3A : OpcodeMap::TWO_BYTE;
    constexpr uint8_t REPEATS[] = {0, 0, 0xf3, 0xf2};
    insn.repeat = REPEATS[last & 3];
    insn.operand_16 = (last & 3) == 1;
}

bool has_modrm(OpcodeMap map, uint8_t opcode) {
    unsigned high = opcode >> 4, low = opcode & 15;
    if (map == OpcodeMap::ONE_BYTE) {
        if (high < 4) return (low & 7) < 4;
        if (high == 6) return low == 3 || low == 9 || low == 11;
        if (high == 8) return true;
        if (high == 0xc) return low < 2 || low == 6 || low == 7;
        if (high == 0xd) return low < 4 || low >= 8;
        return high == 0xf && (low == 6 || low == 7 || low >= 14);
    }
    if (map != OpcodeMap::TWO_BYTE) return true;
    switch (high) {
        case 0: return low < 4 || low == 13 || low == 15;
        case 3: return low >= 8;
        case 7: return low != 7;
        case 8: return false;
        case 0xa: return (low & 7) > 2;
        case 0xc: return low < 8;
        default: return true;
    }
}

// Bytes of immediates and of jumps' displacements.
unsigned immediate_size(const X86Instruction& insn) {
    unsigned word = insn.operand_size() == 2 ? 2 : 4, high = insn.opcode >> 4, low = insn.opcode & 15;
    if (insn.map == OpcodeMap::THREE_BYTE_3A) return 1;
    if (insn.map == OpcodeMap::THREE_BYTE_38) return 0;
    if (insn.map == OpcodeMap::TWO_BYTE) {
        if (high == 8) return word;
        if (high == 7) return low < 4 ? 1 : low == 8 && (insn.operand_16 || insn.repeat == 0xf2) ? 2 : 0;
        if (high == 0xa) return low == 4 || low == 12;
        if (high == 0xc) return low == 2 || (low >= 4 && low <= 6);
        return insn.opcode == 0xba || insn.opcode == 0x0f;
    }
    switch (high) {
        case 0:
        case 1:
        case 2:
        case 3: return (low & 7) == 4 ? 1 : (low & 7) == 5 ? word : 0;
        case 6: return low == 8 || low == 9 ? word : low == 10 || low == 11 ? 1 : 0;
        case 7: return 1;
        case 8: return low == 1 ? word : low == 0 || low == 2 || low == 3 ? 1 : 0;
        case 0xa: return low < 4 ? (insn.address_32 ? 4 : 8) : low == 8 ? 1 : low == 9 ? word : 0;
        case 0xb: return low < 8 ? 1 : insn.operand_size();
        case 0xc:
            if (low == 2 || low == 8 || low == 10) return 2;
            if (low == 7) return word;
            return low == 0 || low == 1 || low == 6 || low == 13;
        case 0xe: return low < 8 || low == 11 ? 1 : low == 8 || low == 9 ? word : 0;
        case 0xf: return insn.extension() < 2 ? (low == 6 ? 1 : low == 7 ? word : 0) : 0;
        default: return 0;
    }
}

void read_operand(X86Instruction& insn, Reader& reader) {
    insn.modrm = reader.byte();
    bool control = insn.map == OpcodeMap::TWO_BYTE && insn.opcode >= 0x20 && insn.opcode < 0x24;  // MOV CRn, DRn
    if (control) insn.modrm |= REGISTERS;
    unsigned mode = insn.modrm >> 6, low = insn.modrm & 7;
    if (mode == 3) return;
    if (low == 4) {
        insn.has_sib = true;
        insn.sib = reader.byte();
    }
    bool no_base = mode == 0 && (low == 5 || (insn.has_sib && (insn.sib & 7) == 5));
    insn.displacement = reader.number(mode == 1 ? 1 : mode == 2 || no_base ? 4 : 0);
}

}  // namespace

X86Instruction read_x86_instruction(std::span<const uint8_t> bytes) {
    X86Instruction insn;
    Reader reader(bytes);
    while (prefix(reader.peek(), insn) || reader.peek() >> 4 == 4) {
        uint8_t byte = reader.byte();
        if (!reader.complete()) return insn;
        if (byte >> 4 == 4) set_rex(insn, byte);
    }
    uint8_t opcode = reader.byte();
    if (opcode == 0xc4 || opcode == 0xc5) {
        read_vex(insn, reader, opcode == 0xc4);
        opcode = reader.byte();
    } else if (opcode == 0x0f) {
        opcode = reader.byte();
        insn.map = opcode == 0x38   ? OpcodeMap::THREE_BYTE_38
                   : opcode == 0x3a ? OpcodeMap::THREE_BYTE_3A
                                    : OpcodeMap::TWO_BYTE;
        if (insn.map != OpcodeMap::TWO_BYTE) opcode = reader.byte();
    }
    insn.opcode = opcode;
    insn.has_modrm = has_modrm(insn.map, opcode);
    if (insn.has_modrm) read_operand(insn, reader);
    insn.immediate = static_cast<uint64_t>(reader.number(immediate_size(insn)));
    constexpr uint8_t ENTER = 0xc8;
    if (insn.map == OpcodeMap::ONE_BYTE && opcode == ENTER) insn.second_immediate = reader.byte();
    insn.length = reader.complete() ? static_cast<uint8_t>(reader.at()) : 0;
    return insn;
}

}  // namespace perfemu::slice
