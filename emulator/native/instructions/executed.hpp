// Instructions that the engine's translator does not translate, but calls us to execute.
#pragma once

#include <cstdint>
#include <span>

#include "instructions/encoding.hpp"
#include "instructions/families.hpp"

namespace perfemu {

// The operands of one at hand. Accesses of memory may raise an exception, and then do not return.
class Operands {
  public:
    // As a translation hands them over: `packed`, and the displacement with the immediate in its low byte.
    Operands(Environment* environment, uint64_t displacement, uint32_t packed, uintptr_t return_address)
        : environment_(environment), displacement_(displacement), packed_(packed), return_address_(return_address) {}
    // What of it is known when it is translated; `next`: address of the instruction behind it.
    static uint32_t pack(const Encoding& encoding, unsigned row);
    static uint64_t pack_displacement(const Encoding& encoding, uint64_t next);

    unsigned row() const { return bits(0, 8); }
    Environment* environment() const { return environment_; }
    uintptr_t return_address() const { return return_address_; }  // for raise_exception
    unsigned bytes() const { return bits(WIDE, 1) ? 8 : 4; }      // of general registers
    unsigned reg() const { return bits(REG, 4); }
    unsigned third() const { return bits(THIRD, 4); }
    uint8_t immediate() const { return static_cast<uint8_t>(displacement_); }
    // Of memory; of instructions without it, the immediate of 16 bits.
    uint64_t displacement() const { return static_cast<uint64_t>(static_cast<int64_t>(displacement_) >> 8); }
    // Of the operand's size; a register of 32 bits is written whole.
    uint64_t read(unsigned general) const;
    void write(unsigned general, uint64_t value) const;
    // ModRM's operand, of the operand's size.
    uint64_t read_source() const;
    // The same of memory: so many bytes, 1, 2, 4 or 8.
    bool in_memory() const { return bits(IN_MEMORY, 1); }
    uint64_t load(int bytes) const;
    void store(int bytes, uint64_t value) const;
    unsigned source_register() const { return bits(BASE, 4); }

  private:
    enum Field : unsigned {
        REG = 8,
        THIRD = 12,
        BASE = 16,
        INDEX = 20,
        SCALE = 24,
        SEGMENT = 26,
        IN_MEMORY = 28,
        NO_BASE = 29,
        WIDE = 30,
        ADDRESS_32 = 31
    };
    unsigned bits(unsigned at, unsigned count) const { return packed_ >> at & ((1u << count) - 1); }
    uint64_t address() const;

    Environment* environment_;
    uint64_t displacement_;
    uint32_t packed_;
    uintptr_t return_address_;
};

// The flags besides, if it leaves any; the others of CF, PF, AF, ZF, SF and OF are then zero.
using Execute = void(const Operands& operands);

struct ExecutedRow {
    static constexpr uint8_t ANY_GROUP = 0xff;
    enum Form : uint8_t { REGISTER = 1, MEMORY = 2, EITHER = REGISTER | MEMORY };
    enum Width : uint8_t { BITS_16 = 1, BITS_32 = 2, BITS_64 = 4, ANY_WIDTH = 7 };

    Encoding::Map map;
    uint8_t opcode;
    uint8_t prefixes;
    uint8_t group = ANY_GROUP;  // ModRM.reg, where it is a part of the opcode
    uint8_t form = EITHER;
    uint8_t widths = ANY_WIDTH;
    bool vex = false;
    bool sets_flags = false;  // in `flags_source`
    Execute* execute;
};

// The row of the instruction; null where the engine does it right.
const ExecutedRow* executed_row(const Encoding& encoding);

// Between these two, what the engine translates at `address` is a call of the row's function, as one instruction.
void begin_executed(const ExecutedRow& row, const Encoding& encoding, uint64_t address);
void end_executed();

InstructionFamily executed_family();

}  // namespace perfemu
