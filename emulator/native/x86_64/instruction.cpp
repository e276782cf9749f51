#include "x86_64/instruction.hpp"

#include <algorithm>

#include "x86_64/row.hpp"

namespace perfemu::x86_64 {
namespace {

constexpr size_t LONGEST = 15;
constexpr uint8_t REGISTERS = 0xc0;  // in ModRM

class Reader {
  public:
    explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes.first(std::min(bytes.size(), LONGEST))) {}
    bool complete() const { return complete_; }
    size_t at() const { return at_; }
    uint8_t peek() {
        complete_ &= at_ < bytes_.size();
        return complete_ ? bytes_[at_] : 0;
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

void set_rex(Instruction& insn, uint8_t rex) {
    insn.has_rex = true;
    insn.rex_w = rex & 8;
    insn.rex_r = rex & 4;
    insn.rex_x = rex & 2;
    insn.rex_b = rex & 1;
}

bool prefix(uint8_t byte, Instruction& insn) {
    switch (byte) {
        case 0x66: insn.operand_16 = insn.mode != CodeMode::BITS_16; return true;
        case 0x67:
            insn.address_32 = insn.mode != CodeMode::BITS_32;
            insn.address_16 = !insn.address_32;
            return true;
        case 0xf0: insn.locked = true; return true;
        case 0xf2: insn.repeat = insn.repeat ? insn.repeat : byte; return true;
        case 0xf3: insn.repeat = byte; return true;
        case 0x64:
            insn.segment = Segment::FS;
            insn.segment_override = 4;
            return true;
        case 0x65:
            insn.segment = Segment::GS;
            insn.segment_override = 5;
            return true;
        case 0x26:
        case 0x2e:
        case 0x36:
        case 0x3e:
            insn.segment = Segment::NONE;
            insn.segment_override = byte >> 3 & 3;
            return true;
        default: break;
    }
    const bool rex = byte >> 4 == 4 && insn.mode == CodeMode::BITS_64;
    if (rex) set_rex(insn, byte);
    return rex;
}

// Intel SDM vol. 2, 2.3.5: C5 RvvvvLpp, C4 RXBmmmmm WvvvvLpp, all register bits inverted.
void read_vex(Instruction& insn, Reader& reader, bool three_bytes) {
    uint8_t first = reader.byte();
    uint8_t last = three_bytes ? reader.byte() : first;
    insn.has_rex = true;
    insn.rex_r = !(first & 0x80);
    insn.rex_x = three_bytes && !(first & 0x40);
    insn.rex_b = three_bytes && !(first & 0x20);
    insn.rex_w = three_bytes && last & 0x80;
    insn.vex_register = ~(last >> 3) & 15;
    uint8_t map = three_bytes ? first & 31 : 1;
    insn.map = map == 2 ? OpcodeMap::VEX_38 : map == 3 ? OpcodeMap::VEX_3A : OpcodeMap::VEX_TWO_BYTE;
    constexpr uint8_t REPEATS[] = {0, 0, 0xf3, 0xf2};
    insn.repeat = REPEATS[last & 3];
    insn.operand_16 = (last & 3) == 1;
}

void read_opcode(Instruction& insn, Reader& reader) {
    insn.opcode = reader.byte();
    const bool vex = insn.mode == CodeMode::BITS_64 || reader.peek() >= REGISTERS;  // otherwise LES and LDS
    if (vex && (insn.opcode == 0xc4 || insn.opcode == 0xc5)) {
        read_vex(insn, reader, insn.opcode == 0xc4);
        insn.opcode = reader.byte();
    } else if (insn.opcode == 0x0f) {
        insn.opcode = reader.byte();
        insn.map = insn.opcode == 0x38   ? OpcodeMap::THREE_BYTE_38
                   : insn.opcode == 0x3a ? OpcodeMap::THREE_BYTE_3A
                                         : OpcodeMap::TWO_BYTE;
        if (insn.map != OpcodeMap::TWO_BYTE) insn.opcode = reader.byte();
    }
}

void read_modrm(Instruction& insn, Reader& reader) {
    insn.has_modrm = true;
    insn.modrm = reader.byte();
    bool control = insn.map == OpcodeMap::TWO_BYTE && insn.opcode >> 2 == 0x20 >> 2;  // MOV CRn, DRn
    if (control) insn.modrm |= REGISTERS;
    unsigned mode = insn.modrm >> 6, low = insn.modrm & 7;
    if (mode == 3) return;
    if (insn.address_16) {
        insn.displacement = reader.number(mode == 1 ? 1 : mode == 2 || insn.no_register() ? 2 : 0);
        return;
    }
    if (low == RSP) {
        insn.has_sib = true;
        insn.sib = reader.byte();
    }
    bool no_base = mode == 0 && (low == RBP || (insn.has_sib && (insn.sib & 7) == RBP));
    insn.displacement = reader.number(mode == 1 ? 1 : mode == 2 || no_base ? 4 : 0);
}

// Bytes of an operand within the instruction.
unsigned immediate_bytes(const Instruction& insn, OperandCode code) {
    switch (code.method) {
        case AddressingMethod::OFFSET: return insn.address_16 ? 2 : insn.address_32 ? 4 : 8;
        case AddressingMethod::TARGET: return code.size == Size::BYTE ? 1 : insn.operand_size() == 2 ? 2 : 4;
        case AddressingMethod::IMMEDIATE: {
            const unsigned size = size_of(code.size, insn);
            return size == 8 && code.size != Size::FULL ? 4 : size;
        }
        default: return 0;
    }
}

void read_immediates(Instruction& insn, Reader& reader) {
    for (const OperandCode code : insn.row->operands) {
        if (const unsigned bytes = immediate_bytes(insn, code))
            insn.immediate = static_cast<uint64_t>(reader.number(bytes));
        if (code.method == AddressingMethod::SECOND_IMMEDIATE)
            insn.second_immediate = static_cast<uint64_t>(reader.number(code.size == Size::WORD ? 2 : 1)) & 0xffff;
    }
}

}  // namespace

unsigned Instruction::base() const {
    static constexpr uint8_t OF_16[] = {RBX, RBX, RBP, RBP, RSI, RDI, RBP, RBX};
    if (address_16) return no_register() ? NO_REGISTER : OF_16[modrm & 7];
    if (!has_sib) return no_register() ? NO_REGISTER : rm();
    const bool none = (sib & 7) == RBP && modrm >> 6 == 0;
    return none ? NO_REGISTER : (sib & 7U) | (rex_b ? 8U : 0);
}

unsigned Instruction::index() const {
    static constexpr uint8_t OF_16[] = {RSI, RDI, RSI, RDI};
    if (address_16) return (modrm & 7) < 4 ? OF_16[modrm & 7] : NO_REGISTER;
    if (!has_sib) return NO_REGISTER;
    const unsigned number = (sib >> 3 & 7) | (rex_x ? 8U : 0);
    return number == RSP ? NO_REGISTER : number;
}

Instruction read_instruction(std::span<const uint8_t> bytes, CodeMode mode) {
    Instruction insn;
    insn.mode = mode;
    insn.operand_16 = insn.address_16 = mode == CodeMode::BITS_16;
    insn.address_32 = mode == CodeMode::BITS_32;
    Reader reader(bytes);
    while (prefix(reader.peek(), insn)) reader.byte();
    read_opcode(insn, reader);
    // 90 is NOP, unless REX.B makes it XCHG with R8.
    constexpr uint8_t NOP = 0x90, XCHG = 0x91;
    const bool exchanges = insn.map == OpcodeMap::ONE_BYTE && insn.opcode == NOP && insn.rex_b;
    const Candidates& candidates = rows_of(insn.map, exchanges ? XCHG : insn.opcode, mode);
    if (candidates.modrm) read_modrm(insn, reader);
    const Row* row = reader.complete() ? candidates.choose(insn) : nullptr;
    if (!row) return insn;
    insn.row = row;
    read_immediates(insn, reader);
    if (reader.complete())
        insn.length = static_cast<uint8_t>(reader.at());
    else
        insn.row = nullptr;
    return insn;
}

}  // namespace perfemu::x86_64
