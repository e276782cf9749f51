#include "aarch64/memory_operand.hpp"

#include <algorithm>

namespace perfemu::aarch64 {
namespace {

constexpr unsigned VECTOR_BIT = 26, QUAD_BIT = 30;
constexpr unsigned PAIR_BIT = 21;  // of exclusive accesses

// Registers of up to 16 bytes: the engine accesses those by halves.
void set_registers(MemoryOperand& operand, unsigned register_bytes, unsigned registers) {
    operand.register_bytes = static_cast<uint8_t>(register_bytes);
    operand.bytes = static_cast<uint16_t>(register_bytes * registers);
    operand.elements = static_cast<uint8_t>(register_bytes == 16 ? 2 * registers : registers);
}

void set_data(const Row& row, MemoryOperand& operand, uint32_t number) {
    if (row.has(effect::LOADS)) operand.loaded.add(number);
    if (row.has(effect::STORES)) operand.stored.add(number);
}

unsigned result_bytes(const Row& row, const MemoryOperand& operand) {
    if (operand.vector) return std::max<unsigned>(operand.register_bytes, 4);
    return row.has(effect::TO_64) || operand.register_bytes == 8 ? 8 : 4;
}

// CAS, CASP: Rs is compared, and gets what was there; Rt is stored.
void compare_and_swap(MemoryOperand& operand, uint32_t word) {
    const bool pair = !bit_of(word, 23);
    const unsigned size = pair ? (bit_of(word, QUAD_BIT) ? 8 : 4) : 1U << field(word, 30, 2);
    set_registers(operand, size, pair ? 2 : 1);
    operand.result_bytes = size == 8 ? 8 : 4;
    for (uint32_t i = 0; i < (pair ? 2U : 1U); i++) {
        operand.stored.add(rm(word) + i);
        operand.stored.add(rd(word) + i);
        operand.loaded.add(rm(word) + i);
    }
}

// ... and LDADD and the like, SWP; LDAPR.
void at_base(const Row& row, MemoryOperand& operand, uint32_t word) {
    const bool exclusive_or_ordered = field(word, 24, 6) == 0b001000;
    const bool atomic = row.has(effect::LOADS) && row.has(effect::STORES);
    const unsigned size = 1U << field(word, 30, 2);
    if (exclusive_or_ordered && atomic) return compare_and_swap(operand, word);
    operand.result_bytes = size == 8 ? 8 : 4;
    if (!exclusive_or_ordered) {
        set_registers(operand, size, 1);
        operand.loaded.add(rd(word));
        if (atomic) operand.stored.add(rm(word));
        return;
    }
    const bool pair = row.has(effect::MONITORED) && bit_of(word, PAIR_BIT);
    set_registers(operand, size, pair ? 2 : 1);
    if (pair && size == 4) operand.elements = 1;  // both as one
    if (pair && size == 8) operand.lanes = 2;
    set_data(row, operand, rd(word));
    if (pair) set_data(row, operand, ra(word));
    if (row.has(effect::MONITORED) && row.has(effect::STORES)) operand.status = static_cast<uint8_t>(rm(word));
}

void literal(const Row& row, MemoryOperand& operand, uint32_t word) {
    operand.offset = signed_field(word, 5, 19) * 4;
    if (row.has(effect::PREFETCHES)) return;
    const uint32_t size = field(word, 30, 2);
    set_registers(operand, operand.vector ? 4U << size : size == 1 ? 8 : 4, 1);
    set_data(row, operand, rd(word));
    operand.result_bytes = static_cast<uint8_t>(result_bytes(row, operand));
}

void pair(const Row& row, MemoryOperand& operand, uint32_t word) {
    enum { NO_ALLOCATE, POST_INDEX, OFFSET, PRE_INDEX };
    const uint32_t size = field(word, 30, 2), mode = field(word, 23, 2);
    const unsigned register_bytes = operand.vector ? 4U << size : size == 2 ? 8 : 4;
    set_registers(operand, register_bytes, 2);
    if (register_bytes >= 8) operand.lanes = 2;
    set_data(row, operand, rd(word));
    set_data(row, operand, ra(word));
    operand.result_bytes = static_cast<uint8_t>(result_bytes(row, operand));
    operand.step = signed_field(word, 15, 7) * static_cast<int64_t>(register_bytes);
    operand.offset = mode == POST_INDEX ? 0 : operand.step;
    operand.writes_back = mode == POST_INDEX || mode == PRE_INDEX;
}

// Size and opc say the same in all addressing modes of one register.
void single(const Row& row, MemoryOperand& operand, uint32_t word) {
    const bool quad = operand.vector && bit_of(word, 23);
    const unsigned scale = quad ? 4 : field(word, 30, 2);
    set_registers(operand, 1U << scale, 1);
    set_data(row, operand, rd(word));
    operand.result_bytes = static_cast<uint8_t>(result_bytes(row, operand));
    switch (row.addressing) {
        case Addressing::UNSIGNED: operand.offset = int64_t{field(word, 10, 12)} << scale; break;
        case Addressing::REGISTER:
            operand.indexed = true;
            operand.index = static_cast<uint8_t>(rm(word));
            operand.extend = static_cast<uint8_t>(field(word, 13, 3));
            operand.shift = static_cast<uint8_t>(bit_of(word, 12) ? scale : 0);
            break;
        default: {
            constexpr uint32_t POST_INDEX = 1, PRE_INDEX = 3;
            const uint32_t mode = field(word, 10, 2);
            operand.step = signed_field(word, 12, 9);
            operand.offset = mode == POST_INDEX ? 0 : operand.step;
            operand.writes_back = mode == POST_INDEX || mode == PRE_INDEX;
        }
    }
}

// Post-indexed, if at all: by Rm, or by what is accessed.
void structures(const Row& row, MemoryOperand& operand, uint32_t word, unsigned registers) {
    operand.result_bytes = bit_of(word, QUAD_BIT) ? 16 : 8;
    operand.lanes = static_cast<uint8_t>(row.has(effect::LOADS) ? registers : 1);
    for (uint32_t i = 0; i < registers; i++) set_data(row, operand, rd(word) + i);
    operand.writes_back = bit_of(word, 23);
    operand.index = static_cast<uint8_t>(rm(word));
    operand.steps_by_register = operand.writes_back && operand.index != ZERO_REGISTER;
    operand.step = operand.bytes;
}

void multiple_structures(const Row& row, MemoryOperand& operand, uint32_t word) {
    struct Layout {
        uint8_t opcode, registers, interleaved;
    };
    constexpr Layout LAYOUTS[] = {{0, 4, 4}, {2, 4, 1}, {4, 3, 3}, {6, 3, 1}, {7, 1, 1}, {8, 2, 2}, {10, 2, 1}};
    const Layout* layout = std::find_if(std::begin(LAYOUTS), std::end(LAYOUTS),
                                        [word](const Layout& each) { return each.opcode == field(word, 12, 4); });
    const unsigned register_bytes = bit_of(word, QUAD_BIT) ? 16 : 8;
    const unsigned element = layout->interleaved == 1 ? 8 : 1U << field(word, 10, 2);  // single registers by 8 bytes
    operand.register_bytes = static_cast<uint8_t>(register_bytes);
    operand.bytes = static_cast<uint16_t>(register_bytes * layout->registers);
    operand.elements = static_cast<uint8_t>(operand.bytes / element);
    structures(row, operand, word, layout->registers);
}

void single_structure(const Row& row, MemoryOperand& operand, uint32_t word) {
    const unsigned registers = (field(word, 13, 1) << 1 | field(word, 21, 1)) + 1;
    const unsigned scale = field(word, 14, 2);
    const bool replicates = scale == 3, doublewords = scale == 2 && bit_of(word, 10);
    const unsigned element = replicates ? 1U << field(word, 10, 2) : doublewords ? 8 : 1U << scale;
    operand.register_bytes = static_cast<uint8_t>(element);
    operand.bytes = static_cast<uint16_t>(element * registers);
    operand.elements = static_cast<uint8_t>(registers);
    structures(row, operand, word, registers);
}

}  // namespace

MemoryOperand memory_operand(const Row& row, uint32_t word) {
    MemoryOperand operand{.base = static_cast<uint8_t>(rn(word)), .vector = bit_of(word, VECTOR_BIT)};
    switch (row.addressing) {
        case Addressing::NONE: break;
        case Addressing::BASE: at_base(row, operand, word); break;
        case Addressing::LITERAL: literal(row, operand, word); break;
        case Addressing::PAIR: pair(row, operand, word); break;
        case Addressing::IMMEDIATE:
        case Addressing::UNSIGNED:
        case Addressing::REGISTER: single(row, operand, word); break;
        case Addressing::MULTIPLE_STRUCTURES: multiple_structures(row, operand, word); break;
        case Addressing::SINGLE_STRUCTURE: single_structure(row, operand, word); break;
        case Addressing::CACHE_LINE: operand.base = static_cast<uint8_t>(rd(word)); operand.bytes = ZVA_BYTES;
    }
    return operand;
}

}  // namespace perfemu::aarch64
