// x86-64 for the timing models: rows of capstone's instruction numbers, each with the class and the operands' roles.
#pragma once

#include <cstdint>
#include <span>

#include "timing/timed_op.hpp"

namespace perfemu::x86_64 {

// What happens to the first operand; the others are read. A memory operand's direction follows.
enum class Form : uint8_t {
    READ,      // read: cmp, test, ucomisd
    WRITE,     // written
    UPDATE,    // read and written
    UPDATE_2,  // the first two are: xchg, xadd
    WRITE_2,   // the first two are written: mulx
    IMPLICIT,  // no explicit operand counts: lea's and prefetches' memory operand is an address only
    ADDRESS,   // as WRITE, with a memory operand that is not accessed: lea
};

// Beyond the operands.
namespace effect {
static constexpr uint32_t FLAGS_IN = 1 << 0, CARRY_IN = 1 << 1, FLAGS_OUT = 1 << 2, CARRY_OUT = 1 << 3;
static constexpr uint32_t STATUS = FLAGS_OUT | CARRY_OUT;  // all flags are written
static constexpr uint32_t BOTH_IN = FLAGS_IN | CARRY_IN;
static constexpr uint32_t RAX_IN = 1 << 4, RAX_OUT = 1 << 5, RDX_IN = 1 << 6, RDX_OUT = 1 << 7;
static constexpr uint32_t RCX_IN = 1 << 8, RCX_OUT = 1 << 9;
static constexpr uint32_t SOURCE_INDEX = 1 << 10, DESTINATION_INDEX = 1 << 11;  // RSI, RDI: address, stepped
static constexpr uint32_t X87 = 1 << 12;                                        // the stack, in and out
static constexpr uint32_t CONTROL_IN = 1 << 13, CONTROL_OUT = 1 << 14;          // x87 and SSE control and status
static constexpr uint32_t MERGES = 1 << 15;           // a register written keeps its upper part: it is read, too
static constexpr uint32_t MERGES_REGISTER = 1 << 16;  // ... only if no operand is in memory: movss, movsd
static constexpr uint32_t ZERO_IDIOM = 1 << 17;       // of twice the same register: zero, whatever was in it
static constexpr uint32_t ONES_IDIOM = 1 << 18;       // ... does not depend on it, but is computed
static constexpr uint32_t MICROCODED = 1 << 19, SERIALIZES = 1 << 20, PREFETCHES = 1 << 21;
static constexpr uint32_t COMPARE_ONLY = 1 << 22;
static constexpr uint32_t TESTS = 1 << 23, SUBTRACTS = 1 << 24, COUNTS = 1 << 25;  // what may fuse, see below
static constexpr uint32_t SINGLE = 1 << 26, DOUBLE = 1 << 27;                      // scalar floating point
static constexpr uint32_t LOADS = 1 << 28, STORES = 1 << 29;                       // memory without an operand
static constexpr uint32_t BY_WIDTH = 1 << 30;  // the class is of 32-bit operands: the next one of 64-bit ones
}  // namespace effect

struct Row {
    uint16_t id;  // x86_insn
    OpClass op_class;
    Form form;
    uint32_t effects = 0;
};

// Each instruction once. What is in neither is of class SYSTEM.
std::span<const Row> general_rows();
std::span<const Row> vector_rows();

}  // namespace perfemu::x86_64
