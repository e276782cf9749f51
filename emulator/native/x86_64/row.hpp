// The table of x86-64's instructions: what a row says. Op, TimedOp and the address slice are derived from it.
//
// What has no row is an undefined instruction: AVX and the like, which CPUID does not offer, too.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "op_classes.hpp"
#include "ops/op.hpp"
#include "x86_64/instruction.hpp"

namespace perfemu::x86_64 {

// --- which encodings ---

// Of these an instruction's prefixes are two: a variant, which chooses among vector instructions, and a repetition,
// which chooses among the others, where 66 is the operands' size.
enum Prefixes : uint8_t {
    NP = 1,
    P66 = 2,
    PF3 = 4,
    PF2 = 8,
    NO_REPEAT = 16,
    REPEAT_F3 = 32,
    REPEAT_F2 = 64,
    ANY = NO_REPEAT | REPEAT_F3 | REPEAT_F2
};

struct OpcodePattern {
    OpcodeMap map;
    uint8_t first, last;  // opcodes
    uint8_t prefixes = ANY;
    bool register_form = true, memory_form = true;  // of ModRM
    int8_t extension = -1;                          // ModRM.reg, if it is part of the opcode
    int8_t number = -1;                             // ModRM.rm, likewise

    constexpr OpcodePattern with(unsigned chosen) const {
        OpcodePattern copy = *this;
        copy.prefixes = static_cast<uint8_t>(chosen);
        return copy;
    }
    constexpr OpcodePattern memory() const {
        OpcodePattern copy = *this;
        copy.register_form = false;
        return copy;
    }
    constexpr OpcodePattern registers() const {
        OpcodePattern copy = *this;
        copy.memory_form = false;
        return copy;
    }
    // SDM's "/digit".
    constexpr OpcodePattern operator/(int digit) const {
        OpcodePattern copy = *this;
        copy.extension = static_cast<int8_t>(digit);
        return copy;
    }
    constexpr OpcodePattern exactly(int digit) const {
        OpcodePattern copy = registers();
        copy.number = static_cast<int8_t>(digit);
        return copy;
    }
    bool fits(const Instruction& insn, unsigned prefixes_there) const;
};

constexpr OpcodePattern one(int first, int last) {
    return {OpcodeMap::ONE_BYTE, static_cast<uint8_t>(first), static_cast<uint8_t>(last)};
}
constexpr OpcodePattern one(int opcode) { return one(opcode, opcode); }
constexpr OpcodePattern two(int first, int last) {
    return {OpcodeMap::TWO_BYTE, static_cast<uint8_t>(first), static_cast<uint8_t>(last)};
}
constexpr OpcodePattern two(int opcode) { return two(opcode, opcode); }
constexpr OpcodePattern in_map(OpcodeMap map, int opcode) {
    return {map, static_cast<uint8_t>(opcode), static_cast<uint8_t>(opcode)};
}
constexpr OpcodePattern three_38(int opcode) { return in_map(OpcodeMap::THREE_BYTE_38, opcode); }
constexpr OpcodePattern three_3a(int opcode) { return in_map(OpcodeMap::THREE_BYTE_3A, opcode); }
constexpr OpcodePattern vex_38(int opcode) { return in_map(OpcodeMap::VEX_38, opcode); }
constexpr OpcodePattern vex_3a(int opcode) { return in_map(OpcodeMap::VEX_3A, opcode); }

// --- operands, named as in Intel SDM vol. 2, appendix A.2 ---

enum class AddressingMethod : uint8_t {
    NONE,
    RM,          // general register or memory, by ModRM.rm
    REG,         // general register, by ModRM.reg
    IN_OPCODE,   // general register, by the opcode's low bits
    VEX,         // general register, by VEX.vvvv
    FIXED_RAX,   // ... and these
    FIXED_RCX,   //
    VECTOR_RM,   // XMM register or memory
    VECTOR_REG,  //
    MMX_RM,      // MMX register or memory
    MMX_REG,     //
    LANES_RM,    // with 66 XMM, otherwise MMX register, or memory
    LANES_REG,   //
    OTHER,       // a register that no dependency is followed of: segment, control, x87
    IMMEDIATE,
    SECOND_IMMEDIATE,
    TARGET,       // a jump's displacement
    OFFSET,       // memory, by an absolute address
    SOURCE,       // memory at RSI
    DESTINATION,  // memory at RDI
};

// Of the operand; of an operand that may be a vector register, the bytes in memory. As the engine accesses them, which
// reads 16 bytes for some instructions that need fewer.
enum class Size : uint8_t {
    NONE,
    BYTE,
    WORD,
    DOUBLEWORD,
    QUADWORD,
    TEN,
    SIXTEEN,
    OPERAND,     // 2, 4 or 8: "v"
    FULL,        // ... also of an immediate, which is at most 4 otherwise
    NARROW,      // 2 or 4
    WIDE,        // 4 or 8: "y"
    STACK,       // 2 or 8
    LOWEST_BIT,  // by the opcode's lowest bit: BYTE or OPERAND
    IN_MEMORY,   // WORD in memory, OPERAND in a register
    LANES,       // 8, with 66 16
    SCALAR,      // 16, with F3 4, with F2 8
    PAIR,        // 8 or 16
    POINTER,     // a far one
    TABLE,       // a descriptor table's limit and base
    ENVIRONMENT,
    STATE,
    FXSAVE,
};

struct OperandCode {
    AddressingMethod method = AddressingMethod::NONE;
    Size size = Size::NONE;
};

// Bytes.
unsigned size_of(Size size, const Instruction& insn);

// What happens to the first operand; the others are read. A memory operand's direction follows.
enum class Form : uint8_t {
    READ,      // read: cmp, test, ucomisd
    WRITE,     // written
    UPDATE,    // read and written
    UPDATE_2,  // the first two are: xchg, xadd
    WRITE_2,   // the first two are written: mulx
    IMPLICIT,  // no explicit operand counts: a prefetch's memory operand is an address only
    ADDRESS,   // as WRITE, with a memory operand that is not accessed: lea
};

// --- beyond the operands ---

namespace effect {
constexpr uint64_t flag(unsigned number) { return uint64_t{1} << number; }

static constexpr uint64_t FLAGS_IN = flag(0), CARRY_IN = flag(1), FLAGS_OUT = flag(2), CARRY_OUT = flag(3);
static constexpr uint64_t STATUS = FLAGS_OUT | CARRY_OUT;  // all flags are written
static constexpr uint64_t BOTH_IN = FLAGS_IN | CARRY_IN;
static constexpr uint64_t BY_CONDITION = flag(4);  // reads those of the condition in the opcode's low four bits
static constexpr uint64_t RAX_IN = flag(5), RAX_OUT = flag(6), RDX_IN = flag(7), RDX_OUT = flag(8);
static constexpr uint64_t RCX_IN = flag(9), RCX_OUT = flag(10), RBX_IN = flag(11), XMM0_IN = flag(12);
static constexpr uint64_t RAX_MERGES = flag(13), RDX_MERGES = flag(14);           // are read, too, if parts are written
static constexpr uint64_t SOURCE_INDEX = flag(15), DESTINATION_INDEX = flag(16);  // RSI, RDI: address, stepped
static constexpr uint64_t X87 = flag(17);                                         // the stack, in and out
static constexpr uint64_t CONTROL_IN = flag(18), CONTROL_OUT = flag(19);          // x87 and SSE control and status
static constexpr uint64_t LOADS = flag(20), STORES = flag(21);                    // memory without an operand
static constexpr uint64_t STACK = flag(22);                                       // ... at RSP, which is moved
static constexpr uint64_t MERGES = flag(23);      // a vector register written keeps its upper part: it is read, too
static constexpr uint64_t ZERO_IDIOM = flag(24);  // of twice the same register: zero, whatever was in it
static constexpr uint64_t ONES_IDIOM = flag(25);  // ... does not depend on it, but is computed
static constexpr uint64_t MICROCODED = flag(26), SERIALIZES = flag(27), PREFETCHES = flag(28);
static constexpr uint64_t COMPARE_ONLY = flag(29);
static constexpr uint64_t TESTS = flag(30), SUBTRACTS = flag(31), COUNTS = flag(32);  // what may fuse, see timed_op.cpp
static constexpr uint64_t AFTER_MOVE = flag(33), AFTER_LOAD = flag(34);               // ... and with what is before it
static constexpr uint64_t SINGLE = flag(35), DOUBLE = flag(36);                       // scalar floating point
static constexpr uint64_t PLAIN = flag(37);     // to or from memory it is a load or a store, and computes nothing
static constexpr uint64_t BY_WIDTH = flag(38);  // the class is of 32-bit operands: the next one of 64-bit ones
static constexpr uint64_t LOCKABLE = flag(39);  // may have a LOCK prefix, with a destination in memory
static constexpr uint64_t ON_VECTORS = flag(40), ON_X87 = flag(41);  // fires SIMD_OP, FP_OP
static constexpr uint64_t TRANSFERS = flag(42);                      // control, into the kernel
static constexpr uint64_t WRITES_TRACE = flag(43);                   // PTWRITE
}  // namespace effect

// What the address slice follows, see dataflow.hpp. None: what is written is not known.
class InstructionDataflow;
using Dataflow = void (InstructionDataflow::*)();

struct Row {
    OpcodePattern pattern;
    std::string_view name;
    std::array<OperandCode, 3> operands{};
    OpClass op_class = OpClass::SYSTEM;
    Form form = Form::IMPLICIT;
    uint64_t effects = 0;
    Dataflow dataflow = nullptr;
    Trap trap = Trap::NONE;

    bool has(uint64_t some) const { return effects & some; }
    // How many operands are written, the first ones; whether they are read as well.
    unsigned written() const;
    bool updates() const { return form == Form::UPDATE || form == Form::UPDATE_2; }
};

// The rows of one opcode.
struct Candidates {
    bool modrm = false;  // follows the opcode
    std::vector<const Row*> rows;

    const Row* choose(const Instruction& insn) const;
};
const Candidates& rows_of(OpcodeMap map, uint8_t opcode, CodeMode mode = CodeMode::BITS_64);

std::vector<Row> legacy_rows();    // what opcodes of one byte are outside of 64-bit mode alone
std::vector<Row> general_rows();   // the opcode map of one byte, but for x87
std::vector<Row> extended_rows();  // of what is behind 0F, general instructions
std::vector<Row> vector_rows();
std::vector<Row> x87_rows();

// --- operands of one instruction ---

struct Operand {
    enum class Kind : uint8_t { NONE, REGISTER, MEMORY, IMMEDIATE };

    Kind kind = Kind::NONE;
    AddressingMethod method = AddressingMethod::NONE;
    uint8_t reg = 0;  // as timed_register numbers them, NONE for those that are not followed
    uint16_t size = 0;
    int64_t immediate = 0;

    bool is_register() const { return kind == Kind::REGISTER; }
    bool is_memory() const { return kind == Kind::MEMORY; }
    bool is_immediate() const { return kind == Kind::IMMEDIATE; }
    bool is_general() const { return is_register() && reg < 16; }
    bool is_string() const { return method == AddressingMethod::SOURCE || method == AddressingMethod::DESTINATION; }
};

class Operands {
  public:
    explicit Operands(const Instruction& insn);
    unsigned count() const { return count_; }
    const Operand& operator[](unsigned index) const { return all_[index]; }
    const Operand* begin() const { return all_.data(); }
    const Operand* end() const { return all_.data() + count_; }
    bool in_memory() const { return in_memory_; }
    bool are_registers(unsigned count) const;  // the first ones

  private:
    std::array<Operand, 3> all_;
    uint8_t count_ = 0;
    bool in_memory_ = false;
};

// Which memory it accesses.
struct Directions {
    bool loads = false, stores = false;
    bool updates = false;  // one operand
};
Directions directions(const Row& row, const Operands& operands);

// Which flags a condition reads, by its number: effect::FLAGS_IN, effect::CARRY_IN.
uint64_t flags_of_condition(unsigned number);

}  // namespace perfemu::x86_64
