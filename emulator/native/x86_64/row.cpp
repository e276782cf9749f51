#include "x86_64/row.hpp"

#include <memory>

#include "ops/timed_op.hpp"

namespace perfemu::x86_64 {
namespace {

bool needs_modrm(const Row& row) {
    if (row.pattern.extension >= 0 || row.pattern.number >= 0) return true;
    for (const OperandCode code : row.operands) switch (code.method) {
            case AddressingMethod::RM:
            case AddressingMethod::REG:
            case AddressingMethod::VECTOR_RM:
            case AddressingMethod::VECTOR_REG:
            case AddressingMethod::MMX_RM:
            case AddressingMethod::MMX_REG:
            case AddressingMethod::LANES_RM:
            case AddressingMethod::LANES_REG: return true;
            default: break;
        }
    return false;
}

struct Table {
    std::vector<Row> rows, others;
    std::array<std::array<Candidates, 256>, OPCODE_MAPS> candidates;
    std::array<Candidates, 256> legacy;  // in place of those, where there are any

    Table() {
        for (auto some : {&general_rows, &extended_rows, &vector_rows, &x87_rows})
            for (Row& row : some()) rows.push_back(row);
        for (const Row& row : rows) enter(row, candidates[static_cast<unsigned>(row.pattern.map)]);
        others = legacy_rows();
        for (const Row& row : others) enter(row, legacy);
    }
    static void enter(const Row& row, std::array<Candidates, 256>& candidates) {
        for (unsigned opcode = row.pattern.first; opcode <= row.pattern.last; opcode++) {
            candidates[opcode].rows.push_back(&row);
            candidates[opcode].modrm |= needs_modrm(row);
        }
    }
};

const Table& table() {
    static const Table all;
    return all;
}

uint8_t vector_register(unsigned number) { return static_cast<uint8_t>(timed_register::VECTOR + number); }
uint8_t mmx_register(unsigned number) { return static_cast<uint8_t>(timed_register::VECTOR + 16 + (number & 7)); }

Operand general(unsigned number, unsigned size, const Instruction& insn) {
    const bool high = size == 1 && !insn.has_rex && number >= RSP && number <= RDI;  // AH, CH, DH, BH
    return {.kind = Operand::Kind::REGISTER,
            .reg = static_cast<uint8_t>(high ? number - RSP : number),
            .size = static_cast<uint16_t>(size)};
}

Operand vector(uint8_t reg) {
    const uint16_t size = reg < mmx_register(0) ? 16 : 8;
    return {.kind = Operand::Kind::REGISTER, .reg = reg, .size = size};
}

Operand memory(unsigned size) { return {.kind = Operand::Kind::MEMORY, .size = static_cast<uint16_t>(size)}; }

Operand register_operand(AddressingMethod method, unsigned size, const Instruction& insn) {
    switch (method) {
        case AddressingMethod::RM: return general(insn.rm(), size, insn);
        case AddressingMethod::REG: return general(insn.reg(), size, insn);
        case AddressingMethod::IN_OPCODE: return general(insn.opcode_register(), size, insn);
        case AddressingMethod::VEX: return general(insn.vex_register, size, insn);
        case AddressingMethod::FIXED_RAX: return general(RAX, size, insn);
        case AddressingMethod::FIXED_RCX: return general(RCX, size, insn);
        case AddressingMethod::VECTOR_RM: return vector(vector_register(insn.rm()));
        case AddressingMethod::VECTOR_REG: return vector(vector_register(insn.reg()));
        case AddressingMethod::MMX_RM: return vector(mmx_register(insn.rm()));
        case AddressingMethod::MMX_REG: return vector(mmx_register(insn.reg()));
        case AddressingMethod::LANES_RM:
            return vector(insn.operand_16 ? vector_register(insn.rm()) : mmx_register(insn.rm()));
        case AddressingMethod::LANES_REG:
            return vector(insn.operand_16 ? vector_register(insn.reg()) : mmx_register(insn.reg()));
        default:
            return {.kind = Operand::Kind::REGISTER, .reg = timed_register::NONE, .size = static_cast<uint16_t>(size)};
    }
}

Operand operand(OperandCode code, const Instruction& insn) {
    const unsigned size = size_of(code.size, insn);
    switch (code.method) {
        case AddressingMethod::RM:
        case AddressingMethod::VECTOR_RM:
        case AddressingMethod::MMX_RM:
        case AddressingMethod::LANES_RM:
            return insn.in_memory() ? memory(size) : register_operand(code.method, size, insn);
        case AddressingMethod::OFFSET:
        case AddressingMethod::SOURCE:
        case AddressingMethod::DESTINATION: return memory(size);
        case AddressingMethod::IMMEDIATE:
        case AddressingMethod::TARGET:
            return {.kind = Operand::Kind::IMMEDIATE,
                    .size = static_cast<uint16_t>(size),
                    .immediate = static_cast<int64_t>(insn.immediate)};
        case AddressingMethod::SECOND_IMMEDIATE:
            return {
                .kind = Operand::Kind::IMMEDIATE, .size = 1, .immediate = static_cast<int64_t>(insn.second_immediate)};
        default: return register_operand(code.method, size, insn);
    }
}

}  // namespace

unsigned Row::written() const {
    if (form == Form::READ || form == Form::IMPLICIT) return 0;
    return form == Form::UPDATE_2 || form == Form::WRITE_2 ? 2 : 1;
}

bool OpcodePattern::fits(const Instruction& insn, unsigned prefixes_there) const {
    if (!(prefixes & prefixes_there)) return false;
    if (!insn.has_modrm) return true;
    if (!(insn.in_register() ? register_form : memory_form)) return false;
    if (extension >= 0 && static_cast<unsigned>(extension) != insn.extension()) return false;
    return number < 0 || static_cast<unsigned>(number) == (insn.modrm & 7U);
}

const Row* Candidates::choose(const Instruction& insn) const {
    const unsigned repeat = insn.repeat == 0xf3 ? REPEAT_F3 : insn.repeat ? REPEAT_F2 : NO_REPEAT;
    const unsigned prefixes = 1U << insn.variant() | repeat;
    for (const Row* row : rows)
        if (row->pattern.fits(insn, prefixes)) return row;
    return nullptr;
}

const Candidates& rows_of(OpcodeMap map, uint8_t opcode, CodeMode mode) {
    if (mode != CodeMode::BITS_64 && map == OpcodeMap::ONE_BYTE && !table().legacy[opcode].rows.empty())
        return table().legacy[opcode];
    return table().candidates[static_cast<unsigned>(map)][opcode];
}

unsigned size_of(Size size, const Instruction& insn) {
    const unsigned full = insn.operand_size();
    constexpr unsigned SCALARS[] = {16, 16, 4, 8};
    switch (size) {
        case Size::NONE: return 0;
        case Size::BYTE: return 1;
        case Size::WORD: return 2;
        case Size::DOUBLEWORD: return 4;
        case Size::QUADWORD: return 8;
        case Size::TEN: return 10;
        case Size::SIXTEEN: return 16;
        case Size::OPERAND:
        case Size::FULL: return full;
        case Size::NARROW: return insn.operand_16 ? 2 : 4;
        case Size::WIDE: return insn.rex_w ? 8 : 4;
        case Size::STACK: return insn.stack_size();
        case Size::LOWEST_BIT: return insn.opcode & 1 ? full : 1;
        case Size::IN_MEMORY: return insn.in_memory() ? 2 : full;
        case Size::LANES: return insn.operand_16 ? 16 : 8;
        case Size::SCALAR: return SCALARS[insn.variant()];
        case Size::PAIR: return insn.rex_w ? 16 : 8;
        case Size::POINTER: return full == 2 ? 4 : 6;  // the engine has no 64-bit form
        case Size::TABLE: return 10;
        // The 16-bit one is shorter; the engine leaves a gap in the longer one with REX.W.
        case Size::ENVIRONMENT: return full == 2 ? 14 : 28;
        case Size::STATE: return full == 2 ? 94 : full == 4 ? 108 : 136;
        case Size::FXSAVE: return 512;
    }
    return 0;
}

Operands::Operands(const Instruction& insn) {
    for (const OperandCode code : insn.row->operands) {
        if (code.method == AddressingMethod::NONE) break;
        all_[count_] = operand(code, insn);
        all_[count_].method = code.method;
        in_memory_ |= all_[count_++].is_memory();
    }
}

bool Operands::are_registers(unsigned count) const {
    if (count > count_) return false;
    for (unsigned i = 0; i < count; i++)
        if (!all_[i].is_register()) return false;
    return true;
}

Directions directions(const Row& row, const Operands& operands) {
    Directions found{.loads = row.has(effect::LOADS), .stores = row.has(effect::STORES)};
    if (row.form == Form::IMPLICIT || row.form == Form::ADDRESS) return found;
    for (unsigned i = 0; i < operands.count(); i++) {
        if (!operands[i].is_memory()) continue;
        const bool written = i < row.written();
        found.loads |= !written || row.updates();
        found.stores |= written;
        found.updates |= written && row.updates();
    }
    return found;
}

uint64_t flags_of_condition(unsigned number) {
    constexpr uint64_t BY_PAIR[] = {effect::FLAGS_IN, effect::CARRY_IN, effect::FLAGS_IN, effect::BOTH_IN,
                                    effect::FLAGS_IN, effect::FLAGS_IN, effect::FLAGS_IN, effect::FLAGS_IN};
    return BY_PAIR[number >> 1 & 7];
}

}  // namespace perfemu::x86_64
