// The table of A64: one row says what an instruction is, what it does and what a core must have to execute it. What the
// core counts (op.cpp), what the timing models see (timed_op.cpp) and where a block accesses memory (slice.cpp) follow.
//
// Encodings and names: Arm ARM DDI 0487, "A64 Instruction Set Encoding".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op.hpp"
#include "ops/timed_op.hpp"

namespace perfemu::aarch64 {

constexpr uint32_t field(uint32_t word, unsigned lowest, unsigned bits) { return word >> lowest & ((1U << bits) - 1); }
constexpr bool bit_of(uint32_t word, unsigned number) { return word >> number & 1; }
constexpr int64_t signed_field(uint32_t word, unsigned lowest, unsigned bits) {
    return static_cast<int64_t>(static_cast<uint64_t>(word >> lowest) << (64 - bits)) >> (64 - bits);
}
// Register fields: Rd is also Rt, Ra also Rt2, Rm also Rs.
constexpr uint32_t rd(uint32_t word) { return field(word, 0, 5); }
constexpr uint32_t rn(uint32_t word) { return field(word, 5, 5); }
constexpr uint32_t rm(uint32_t word) { return field(word, 16, 5); }
constexpr uint32_t ra(uint32_t word) { return field(word, 10, 5); }
static constexpr uint32_t ZERO_REGISTER = 31;  // or SP, as the instruction says
static constexpr uint32_t LINK_REGISTER = 30;

// What instructions do with the registers that their fields name. _X: general, 31 is the zero register; _SP: general,
// 31 is SP; _V: vector. Loads and stores say the rest by their addressing.
namespace effect {
static constexpr uint32_t D_X = 1 << 0, D_SP = 1 << 1, D_V = 1 << 2;  // writes Rd
static constexpr uint32_t RD_X = 1 << 3, RD_V = 1 << 4;               // reads Rd
static constexpr uint32_t N_X = 1 << 5, N_SP = 1 << 6, N_V = 1 << 7;  // reads Rn
static constexpr uint32_t M_X = 1 << 8, M_V = 1 << 9;                 // reads Rm
static constexpr uint32_t A_X = 1 << 10, A_V = 1 << 11;  // reads Ra, the addend (none if it is read as a factor, too)
static constexpr uint32_t ADDEND_D = 1 << 12;            // reads Rd (a vector), the addend
static constexpr uint32_t FLAGS_IN = 1 << 13, FLAGS_OUT = 1 << 14;  // NZCV
static constexpr uint32_t FPCR_IN = 1 << 15, FPCR_OUT = 1 << 16;    // FPCR, FPSR, where they are named
static constexpr uint32_t LINK = 1 << 17;                           // writes X30
static constexpr uint32_t BY_SF = 1 << 18, BY_Q = 1 << 19, BY_TYPE = 1 << 20, WIDE = 1 << 21;  // operand width
static constexpr uint32_t UPPER_HALF = 1 << 22;  // with Q, keeps the lower half of Rd
static constexpr uint32_t SERIALIZES = 1 << 23;
static constexpr uint32_t LOADS = 1 << 24, STORES = 1 << 25, PREFETCHES = 1 << 26;
static constexpr uint32_t UPDATES = LOADS | STORES;
static constexpr uint32_t MONITORED = 1 << 27;  // exclusive: opens the monitor or closes it
static constexpr uint32_t SIGNED = 1 << 28;     // what is loaded is extended with its sign ...
static constexpr uint32_t TO_64 = 1 << 29;      // ... to 64 bits
static constexpr uint32_t MERGES = 1 << 30;     // loads into one lane, the others stay
}  // namespace effect

// How a load or store tells where it does so; memory_operand.hpp reads it.
enum class Addressing : uint8_t {
    NONE,
    BASE,                 // exclusive, ordered and atomic accesses
    LITERAL,              // PC + imm19
    PAIR,                 // imm7: signed offset, pre- or post-indexed
    IMMEDIATE,            // imm9: unscaled, unprivileged, pre- or post-indexed
    UNSIGNED,             // imm12, scaled
    REGISTER,             // an index
    MULTIPLE_STRUCTURES,  // LD1 ... LD4 of whole registers
    SINGLE_STRUCTURE,     // ... of one lane, or of one element for all lanes
    CACHE_LINE,           // Rt: DC ZVA, DC CVAP
};

// What not every core has, by the names of /proc/cpuinfo.
enum class Feature : uint8_t { NONE, ATOMICS, ASIMDRDM, LRCPC, DCPOP, ASIMDDP, FP16 };
using Features = uint32_t;  // a bit each
constexpr Features bit(Feature feature) { return 1U << static_cast<unsigned>(feature); }
// Throws std::invalid_argument.
Features features_of(std::span<const std::string> names);

// What fields beside the opcode change for the timing models.
using Adjust = void (*)(TimedOp& op, uint32_t word);
// What the address slice follows, see dataflow.hpp. None: what is written is not known.
class InstructionDataflow;
using Dataflow = void (InstructionDataflow::*)();

struct Row {
    uint32_t mask, value;
    std::string_view name;
    OpClass op_class;
    uint32_t effects = 0;
    BranchKind branch = BranchKind::NONE;
    Addressing addressing = Addressing::NONE;
    Feature feature = Feature::NONE;
    ProbeMask probes = 0;  // that fire beside those that follow from the class, the effects and the branch
    Adjust adjust = nullptr;
    Dataflow dataflow = nullptr;
    bool kernel_only = false;  // undefined in user mode
    uint8_t changes = 0;       // bits of Change

    bool has(uint32_t some) const { return effects & some; }
    bool fits(uint32_t word) const { return (word & mask) == value; }

    // The same row, but for this.
    constexpr Row branches(BranchKind kind) const {
        Row row = *this;
        row.branch = kind;
        return row;
    }
    constexpr Row accesses(Addressing how) const {
        Row row = *this;
        row.addressing = how;
        return row;
    }
    constexpr Row needs(Feature needed) const {
        Row row = *this;
        row.feature = needed;
        return row;
    }
    constexpr Row fires(Probe probe) const {
        Row row = *this;
        row.probes |= perfemu::bit(probe);
        return row;
    }
    constexpr Row changing(uint8_t what) const {
        Row row = *this;
        row.changes = what;
        return row;
    }
    constexpr Row of_kernels(uint8_t changed = 0) const {
        Row row = changing(changed);
        row.kernel_only = true;
        return row;
    }
    constexpr Row adjusted(Adjust by) const {
        Row row = *this;
        row.adjust = by;
        return row;
    }
    constexpr Row follows(Dataflow flow) const {
        Row row = *this;
        row.dataflow = flow;
        return row;
    }
};

// The row of an instruction; nullptr if it is none.
const Row* row_of(uint32_t word);

std::vector<Row> general_rows();  // branches, system instructions, data processing of general registers
std::vector<Row> memory_rows();
std::vector<Row> vector_rows();  // scalar floating point, Advanced SIMD, cryptography

}  // namespace perfemu::aarch64
