// An instruction as the timing models see it: what it computes, from which registers, into which.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "op_classes.hpp"

namespace perfemu {

// One number for each register that carries a dependency. Parts of a register are the register.
namespace timed_register {
static constexpr uint8_t GENERAL = 0;      // A64 X0..X30; x86 RAX RCX RDX RBX RSP RBP RSI RDI R8..R15
static constexpr uint8_t STACK = 31;       // A64 SP (x86: GENERAL + 4)
static constexpr uint8_t FLAGS = 32;       // A64 NZCV; x86 all flags but CF
static constexpr uint8_t CARRY = 33;       // x86 CF, which INC and DEC leave alone
static constexpr uint8_t VECTOR = 34;      // V0..V31, XMM0..XMM15
static constexpr uint8_t X87 = 66;         // ST(0)..ST(7) as physical numbers are not known: the stack as a whole
static constexpr uint8_t FP_CONTROL = 67;  // FPCR/FPSR, MXCSR
static constexpr uint8_t COUNT = 68;
static constexpr uint8_t NONE = 255;
}  // namespace timed_register
inline bool is_vector(uint8_t reg) { return reg >= timed_register::VECTOR && reg < timed_register::VECTOR + 32; }

// The last three are no operation's. So are recorded system calls, exceptions, interrupts and what returns from them:
// x86's are FAR, AArch64's the others.
enum class BranchKind : uint8_t {
    NONE,
    CONDITIONAL,
    DIRECT,
    INDIRECT,
    CALL,
    INDIRECT_CALL,
    RETURN,
    FAR,
    EXCEPTION,
    EXCEPTION_RETURN
};
using BranchKinds = uint16_t;  // bit (1 << BranchKind)

struct TimedOp {
    uint16_t offset = 0;  // from the block's start, bytes
    uint8_t length = 0;   // bytes
    OpClass op_class = OpClass::NONE;
    BranchKind branch = BranchKind::NONE;
    uint8_t width_bytes = 8;  // of the operands: 4, 8, 16

    // A load's result goes to the computation, if there is one, else to the destinations. A store's data are the
    // computation's result, if there is one, else the sources.
    bool loads = false;
    bool stores = false;
    std::array<uint8_t, 6> sources = none<6>();          // of the computation or the store's data
    std::array<uint8_t, 3> address_sources = none<3>();  // base and index; of both, if it loads and stores
    std::array<uint8_t, 4> destinations = none<4>();
    uint8_t write_back = timed_register::NONE;   // base or stack pointer that addressing updates: known early
    uint8_t accumulator = timed_register::NONE;  // of `sources`, the addend of a multiply-add: may arrive late

    // Machines differ in which pairs they fuse; these say which pairs there are. The second follows the first directly.
    bool compares = false;              // CMP/TEST or a flag-setting ALU op that may fuse with a conditional branch
    bool compare_only = false;          // ... CMP, TEST, CMN, TST: nothing but the flags is written
    bool fuses_with_compare = false;    // a conditional branch on the flags
    bool before_branch = false;         // what stands directly after it is one
    uint8_t conditions = 0xff;          // ... groups of conditions: a pair fuses if its two have one in common
    bool memory_or_immediate = false;   // x86: the compare has a memory operand and an immediate, which never fuse
    bool aes_round = false;             // AESE/AESD ...
    bool fuses_with_aes_round = false;  // ... and the AESMC/AESIMC on its result

    bool fuses_with_move = false;     // computes on what a move from a register has just written
    bool fuses_with_load = false;     // ... or one from memory
    bool loads_whole = false;         // a move from memory, without an index, that does nothing else
    bool before_computation = false;  // a move: what stands directly after it fuses with it

    bool eliminable_move = false;  // MOVE or FP_MOVE that a renamer may do
    bool adds_little = false;      // a small constant to a register of 64 bits, which a renamer may do
    bool repeated = false;         // x86 REP: time goes by iterations
    bool complex_address = false;  // base + scaled index; A64: an index scaled by 2 or by 16
    bool microcoded = false;
    uint8_t lanes_loaded = 1;  // registers that the load writes; A64 LDP of two 32-bit ones: 1
    bool prefetches = false;   // PRFM, PREFETCHT0: has address sources, but no data
    bool serializes = false;   // waits for everything before it, and everything after it waits for it

    template <size_t N>
    static constexpr std::array<uint8_t, N> none() {
        std::array<uint8_t, N> all{};
        all.fill(timed_register::NONE);
        return all;
    }
};

// Sets what each says of the one after it. Of the last one nothing is said.
void tell_what_follows(std::span<TimedOp> ops);

// Bytes to TimedOps. Bytes that are no instruction become one op of class SYSTEM.
class TimedDecoder {
  public:
    virtual ~TimedDecoder() = default;
    static std::unique_ptr<TimedDecoder> make(std::string_view isa);
    virtual std::vector<TimedOp> decode(uint64_t address, std::span<const uint8_t> bytes) = 0;
};

std::unique_ptr<TimedDecoder> make_timed_aarch64();
std::unique_ptr<TimedDecoder> make_timed_x86_64();

}  // namespace perfemu
