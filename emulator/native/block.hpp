// What a translated block of guest code does when it retires, decoded once.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "address/slice_code.hpp"
#include "memory.hpp"
#include "probes.hpp"

namespace perfemu {

__extension__ typedef unsigned __int128 ProbeMask;
static_assert(PROBE_COUNT <= 128);

// The probes before this one are known from an instruction's bytes, but for where conditional branches go.
static constexpr unsigned DECODED_PROBES = static_cast<unsigned>(Probe::L1I_ACCESS);
static constexpr ProbeMask DECODED = (ProbeMask{1} << DECODED_PROBES) - 1;

// The number of probes in the mask.
constexpr unsigned size(ProbeMask probes) {
    return static_cast<unsigned>(std::popcount(static_cast<uint64_t>(probes)) +
                                 std::popcount(static_cast<uint64_t>(probes >> 64)));
}

// Number of the lowest probe of a mask that is not empty.
constexpr unsigned lowest(ProbeMask probes) {
    auto low = static_cast<uint64_t>(probes);
    return static_cast<unsigned>(low ? std::countr_zero(low)
                                     : 64 + std::countr_zero(static_cast<uint64_t>(probes >> 64)));
}

constexpr ProbeMask bit(Probe probe) { return ProbeMask{1} << static_cast<unsigned>(probe); }

template <typename... Probes>
constexpr ProbeMask mask(Probes... probes) {
    return (ProbeMask{0} | ... | bit(probes));
}

// Instructions that never execute in the engine: the machine answers them, or they are faults. The first seven are
// emulator.cpu.TrapKind.
enum class Trap : uint8_t { MRS, MSR, CPUID, RDTSC, RDTSCP, RDPMC, XGETBV, UNDEFINED, PRIVILEGED, DEBUG, NONE };

// One instruction.
struct Op {
    ProbeMask probes = 0;            // what fires when it retires
    ProbeMask iteration_probes = 0;  // REP string instructions: what fires with each iteration
    uint16_t offset = 0;             // from the block's start, bytes
    uint8_t length = 0;              // bytes
    Trap trap = Trap::NONE;
    uint16_t trap_encoding = 0;  // of the system register
    int8_t trap_register = -1;   // Rt
    bool conditional = false;    // fires BR_COND_TAKEN and BR_TAKEN if the next instruction is not the one behind it
    bool repeated = false;       // x86: has a REP prefix that repeats it
    bool repeat_may_end_early = false;  // CMPS, SCAS: the flags end the repetition, too
    bool address_32 = false;            // counts in ECX
    bool pushes_flags = false;          // PUSHF: must not show the single-step flag
    bool updates_memory = false;        // x86: reads and writes the same operand, so its read faults as a write
};

struct PreparedBlock;  // timing/pipeline.hpp
struct ModelledBlock;  // model.hpp
struct DropModelledBlock {
    void operator()(ModelledBlock*) const;
};

// Where a block's bytes lie, and those behind it that were looked at, too.
struct BlockFrames {
    static constexpr Frame NONE = ~Frame{0};  // not present

    Frame first = NONE, last = NONE;
    bool operator==(const BlockFrames&) const = default;
};

struct alignas(64) Block {
    // What every run touches, on one cache line.
    uint64_t tag;        // of address and size, see BlockTable
    uint64_t cost;       // taken from Core's budget: instructions, and armed events << 32
    uint64_t end;        // address behind the last instruction
    int32_t runs = 0;    // since the last fold; -1 if one that was folded stopped half-way
    uint16_t sites = 0;  // of `prepared`
    bool plain = false;  // `enter` never fails
    // What came behind it last, at `end` and elsewhere: where to look first, and what to bring to the host's cache.
    std::array<Block*, 2> successors{};
    const PreparedBlock* prepared = nullptr;  // what `modelled` has ...
    SliceCode enter = nullptr;                // ... and if its addresses can be found so

    // Null where the core models nothing, or it never runs as a whole.
    std::unique_ptr<ModelledBlock, DropModelledBlock> modelled;
    // A hook for this block and no other, and where translations call it that return there.
    const void* entry = nullptr;
    std::vector<const void*> callers;
    uint64_t departures = 0;  // of the runs, if branches are followed: execution did not continue at `end`
    uint64_t address;
    uint32_t size;
    BlockFrames frames{};
    bool special = false;     // needs a look before every run: has a trap, a REP or a breakpoint, or may change
    bool changeable = false;  // its bytes are writable somewhere
    bool ends_conditional = false;
    std::vector<Op> ops;
    std::array<uint16_t, DECODED_PROBES> counts{};  // how often each probe fires in one whole run
    std::vector<uint8_t> bytes;                     // what was decoded, kept where it is changeable

    uint32_t instructions() const { return static_cast<uint32_t>(ops.size()); }
    bool contains(uint64_t pc) const { return pc >= address && pc < end; }
    // Index of the instruction at `pc`, or ops.size().
    size_t index_of(uint64_t pc) const {
        size_t index = 0;
        while (index < ops.size() && address + ops[index].offset != pc) index++;
        return index;
    }
};

}  // namespace perfemu
