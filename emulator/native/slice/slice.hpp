// A block's address slice: the least that must be computed, from the registers with which the block is entered, to know
// where its instructions access memory.
//
// A value is a place plus a displacement. A place is a register as it was at the entry, zero (so that a displacement is
// a constant), or the result of a micro-operation. Most addresses are an entry register plus a displacement, which
// takes no micro-operation at all.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/access.hpp"

namespace perfemu::slice {

using ValueNumber = int16_t;

// Entry registers have the numbers below ENTRY_REGISTERS.
static constexpr unsigned ENTRY_REGISTERS = 40;
static constexpr unsigned GENERAL = 0;          // A64 X0..X30, SP; x86 RAX RCX RDX RBX RSP RBP RSI RDI R8..R15
static constexpr unsigned A64_STACK = 31;       // SP
static constexpr unsigned THREAD_POINTER = 32;  // A64 TPIDR_EL0; x86 FS base
static constexpr unsigned GS_BASE = 33;         // x86
static constexpr ValueNumber UNKNOWN = -1;
static constexpr ValueNumber ZERO = ENTRY_REGISTERS;
static constexpr ValueNumber FIRST_RESULT = ENTRY_REGISTERS + 1;
static constexpr unsigned MOST_RESULTS = 512;  // of one segment; what is computed beyond them is unknown

// place + displacement, modulo 2**64.
struct Value {
    ValueNumber place = UNKNOWN;
    int64_t displacement = 0;

    bool known() const { return place != UNKNOWN; }
    bool constant() const { return place == ZERO; }
};
inline constexpr Value NOTHING_KNOWN{};

// How many low bytes of an index count, and what stands above them.
struct Extension {
    uint8_t size_bytes = 8;
    bool sign = false;

    bool operator==(const Extension&) const = default;
};

// base + (extended index << shift)
struct Address {
    Value base;
    Value index{ZERO, 0};
    uint8_t shift = 0;
    Extension extension;  // where the index has a displacement, of all its 8 bytes

    bool known() const { return base.known() && index.known(); }
    Address plus(int64_t bytes) const { return {{base.place, base.displacement + bytes}, index, shift, extension}; }
};

// Of operands; the result of a 32-bit operation has zeros above.
enum class Width : bool { BITS_32, BITS_64 };

enum class Operation : uint8_t {
    ADD,
    SUBTRACT,
    AND,
    OR,
    XOR,
    AND_NOT,  // a & ~b
    OR_NOT,
    XOR_NOT,
    EXTRACT,             // (a << left) >> right, of 64 bits whatever the width: bit fields, constant shifts, extensions
    EXTRACT_SIGNED,      // ... and the shift right copies the sign
    SHIFT_LEFT,          // a by b modulo the width
    SHIFT_RIGHT,         //
    SHIFT_RIGHT_SIGNED,  //
    ROTATE_RIGHT,        //
    MULTIPLY_ADD,        // a * b + c
    MULTIPLY_SUBTRACT,   // c - a * b
    MULTIPLY_LONG,       // the low halves of a and b, unsigned; the result has 64 bits
    MULTIPLY_LONG_SIGNED,
    MULTIPLY_HIGH,
    MULTIPLY_HIGH_SIGNED,
    DIVIDE,         // by zero gives zero
    DIVIDE_SIGNED,  //
    COUNT_LEADING_ZEROS,
    REVERSE_BITS,
    REVERSE_BYTES,
    SELECT,              // c ? a : b
    CONDITION_SUBTRACT,  // 1 if the condition holds for the flags of a - b, as A64's SUBS sets them, else 0
    CONDITION_ADD,
    CONDITION_AND,
    CONDITION_ENTRY,  // ... for the flags with which the block is entered
    LOAD,             // from a + (b << left)
    LOAD_SIGNED,      // ... extended to the width
    CHECK_APART,      // the load's bytes must not be those of an earlier store, which has not been executed yet
};

// A64's conditions, in its encoding's order. C is "no borrow" after a subtraction. x86's CF is a borrow there, so B is
// CARRY_CLEAR and BE is LOWER_OR_SAME, whereas after an addition, an AND or at the entry B is CARRY_SET.
enum class Condition : uint8_t {
    EQUAL,
    NOT_EQUAL,
    CARRY_SET,
    CARRY_CLEAR,
    MINUS,
    PLUS,
    OVERFLOW_SET,
    OVERFLOW_CLEAR,
    HIGHER,
    LOWER_OR_SAME,
    GREATER_OR_EQUAL,
    LESS,
    GREATER,
    LESS_OR_EQUAL,
    ALWAYS,
};

struct MicroOp {
    Operation operation = Operation::ADD;
    Width width = Width::BITS_64;
    uint8_t left = 0;   // EXTRACT's; a load's index is shifted by it
    uint8_t right = 0;  // EXTRACT's
    uint8_t size = 0;   // bytes of a load
    Condition condition = Condition::ALWAYS;
    Value a{ZERO, 0}, b{ZERO, 0}, c{ZERO, 0};
    ValueNumber result = UNKNOWN;  // CHECK_APART: of the load that it is for
    uint32_t store = 0;            // CHECK_APART: the store, by its number among the segment's accesses
};

// A stretch of a block whose addresses follow from the registers at its first instruction. Almost always it is the
// whole block. Where an address depends on what is not computed here (a vector, an atomic's result), a new segment
// begins at that instruction.
struct Segment {
    uint16_t first_op = 0;
    uint16_t offset = 0;  // of that instruction from the block's start, bytes
    std::vector<MicroOp> micro_ops;
    std::vector<Address> addresses;  // of its sites, in order
};

struct Slice {
    std::vector<AccessSite> sites;
    std::vector<Segment> segments;  // the first is the block's beginning, even if it accesses nothing
};

}  // namespace perfemu::slice
