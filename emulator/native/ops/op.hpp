// An instruction as the core counts it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "probes.hpp"

namespace perfemu {

inline constexpr size_t LONGEST_INSTRUCTION = 15;  // bytes

__extension__ typedef unsigned __int128 ProbeMask;
static_assert(PROBE_COUNT <= 128);

// The probes before this one are known from an instruction's bytes, but for where conditional branches go; on a core
// without a pipeline, the clock's too.
static constexpr unsigned DECODED_PROBES = MEMORY_PROBES.first;
// Of the probes that there are.
constexpr bool are_probes(ProbeMask probes) { return PROBE_COUNT == 128 || !(probes >> PROBE_COUNT % 128); }
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

// Instructions that never execute in the engine: the machine answers them, or they are faults, or the core's own. Those
// up to OUTS are emulator.cpu.TrapKind.
enum class Trap : uint8_t {
    MRS,
    MSR,
    CPUID,
    RDTSC,
    RDTSCP,
    RDPMC,
    XGETBV,
    RDMSR,
    WRMSR,
    IN,
    OUT,
    INS,
    OUTS,
    DEBUG_REGISTERS,  // x86: what breaks has changed; who answers it sees which
    UNDEFINED,
    PRIVILEGED,
    DEBUG,
    VECTORS,  // Arm: the guest's kernel has switched them off
    SYSTEM,   // x86, where a guest's own kernel executes: the core executes it itself
    NONE
};

// What an instruction that only a kernel may execute changes for those behind it. The engine ends its block there.
enum Change : uint8_t {
    CHANGES_TRANSLATION = 1,  // registers that say where page tables are, or what they or code mean
    CHANGES_LEVEL = 2,
    CHANGES_MASKS = 4,         // of exceptions, single steps among them
    FORGETS_TRANSLATIONS = 8,  // that are remembered of page tables
};

// By what an instruction may raise an exception that neither its bytes nor page tables foretell.
enum Raises : uint8_t {
    RAISES_IN_USER_MODE = 1,  // the kernel may keep it from user mode
    RAISES_UNALIGNED = 2,
    RAISES_ON_VECTORS = 4,  // Arm: where a kernel has switched them off; SSE: unmasked exceptions
    RAISES_BY_VALUES = 8,   // of its operands
};

// What an instruction, or a block, does that call stacks are made of.
enum class Transfer : uint8_t {
    NONE,
    CALL,
    RETURN,
    JUMP,          // to an address in a register or in memory, which may be longjmp's or that of another stack
    MOVES_STACK,   // sets the stack pointer, and not to one near the frame's: a jump behind it leads elsewhere
    LEAVES_STACK,  // of blocks: both
    UNSURE,        // of blocks: perhaps it has not come to its end, as it may have stored into itself
};

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
    bool repeat_may_end_early = false;   // CMPS, SCAS: the flags end the repetition, too
    bool address_32 = false;             // counts in ECX ...
    bool address_16 = false;             // ... or in CX
    bool pushes_flags = false;           // PUSHF: must not show the single-step flag
    bool writes_trace = false;           // x86: PTWRITE, which a block begins with
    bool updates_memory = false;         // x86: reads and writes the same operand, so its read faults as a write
    uint8_t changes = 0;                 // bits of Change
    bool shows_masks = false;            // of exceptions, in `trap_register`
    bool acts_for_user = false;          // a kernel's access that may do what user mode may
    uint8_t raises = 0;                  // bits of Raises
    Transfer transfer = Transfer::NONE;  // known where calls are followed

    uint64_t repeats(uint64_t count) const {
        return address_16 ? static_cast<uint16_t>(count) : address_32 ? static_cast<uint32_t>(count) : count;
    }
};

}  // namespace perfemu
