// Where and what a load or store accesses, read from its encoding once for all who ask.
#pragma once

#include <array>
#include <cstdint>

#include "aarch64/row.hpp"

namespace perfemu::aarch64 {

static constexpr unsigned ZVA_BYTES = 64;  // DCZID_EL0 of the modelled CPUs

// Numbers of general or vector registers.
struct RegisterList {
    std::array<uint8_t, 4> numbers{};
    uint8_t count = 0;

    void add(uint32_t number) { numbers[count++] = static_cast<uint8_t>(number & 31); }
    const uint8_t* begin() const { return numbers.data(); }
    const uint8_t* end() const { return numbers.data() + count; }
};

struct MemoryOperand {
    // --- where ---
    uint8_t base = 0;      // 31 is SP; of a cache line the zero register
    int64_t offset = 0;    // of the access; of a literal from the instruction
    bool indexed = false;  // by a register: 31 is the zero register
    uint8_t index = 0;
    uint8_t extend = 0;  // UXTB ... SXTX, as they are encoded
    uint8_t shift = 0;   // of the index
    bool writes_back = false;
    int64_t step = 0;                // what is added to the base then ...
    bool steps_by_register = false;  // ... or this register, which is `index`

    // --- what ---
    uint16_t bytes = 0;          // in all
    uint8_t register_bytes = 0;  // in memory, of one register
    uint8_t elements = 1;        // as the engine accesses it
    uint8_t result_bytes = 8;    // of a register
    bool vector = false;
    uint8_t lanes = 1;  // registers that a load writes, as the models count them: two of 32 bits are one
    RegisterList loaded, stored;
    uint8_t status = ZERO_REGISTER;  // general register that says whether an exclusive store has been done
};

MemoryOperand memory_operand(const Row& row, uint32_t word);

// Its address. `value` reads a general register, 31 being SP.
template <typename Value>
uint64_t address_of(const Row& row, const MemoryOperand& operand, uint64_t pc, Value value) {
    if (row.addressing == Addressing::LITERAL) return pc + static_cast<uint64_t>(operand.offset);
    if (row.addressing == Addressing::CACHE_LINE) return operand.base == ZERO_REGISTER ? 0 : value(operand.base);
    const uint64_t base = value(operand.base) + static_cast<uint64_t>(operand.offset);
    if (!operand.indexed || operand.index == ZERO_REGISTER) return base;
    constexpr uint32_t UXTW = 2, SXTW = 6;
    uint64_t index = value(operand.index);
    if (operand.extend == UXTW) index = static_cast<uint32_t>(index);
    if (operand.extend == SXTW) index = static_cast<uint64_t>(int64_t{static_cast<int32_t>(index)});
    return base + (index << operand.shift);
}

}  // namespace perfemu::aarch64
