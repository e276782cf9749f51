// What a translated block of guest code does when it retires, decoded once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "address/slice_code.hpp"
#include "level.hpp"
#include "memory/memory.hpp"
#include "ops/op.hpp"
#include "ops/timed_op.hpp"

namespace perfemu {

struct PreparedBlock;  // timing/pipeline.hpp
struct ModelledBlock;  // model.hpp
struct DropModelledBlock {
    void operator()(ModelledBlock*) const;
};

// Where a block's bytes lie, and those behind it that were looked at, too.
struct BlockFrames {
    Frame first = NO_FRAME, last = NO_FRAME;
    Level level = Level::USER;  // at which they execute: the same bytes do other things at another ...
    uint8_t state = 0;          // ... and in another of these: GuestPageTables::code_state
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
    Transfer transfer = Transfer::NONE;
    // What came behind it last, at `end` and elsewhere: where to look first, and what to bring to the host's cache.
    std::array<Block*, 2> successors{};
    const PreparedBlock* prepared = nullptr;  // what `modelled` has ...
    SliceCode enter = nullptr;                // ... and if its addresses can be found so
    BranchKind ending = BranchKind::NONE;     // the kind of branch that is its last instruction
    uint8_t ending_length = 0;                // bytes of that

    // Null where the core models nothing, or it never runs as a whole.
    std::unique_ptr<ModelledBlock, DropModelledBlock> modelled;
    // A hook for this block and no other, and where translations call it that return there.
    const void* entry = nullptr;
    std::vector<const void*> callers;
    uint64_t departures = 0;  // of the runs, if branches are followed: execution did not continue at `end`
    uint64_t address;
    uint32_t size;
    BlockFrames frames{};
    bool special = false;  // needs a look before every run: has a trap, a REP, PTWRITE or a breakpoint, or may change
    bool changeable = false;        // its bytes are writable somewhere
    bool only_changeable = false;   // special for no other reason, so that it need only be compared before it runs
    uint64_t unchanged_cost = 0;    // ... what it costs then
    uint64_t cost_behind_look = 0;  // what it costs where, with models, `cost` is too high only for its transfer
    bool ends_conditional = false;
    bool acts_for_user = false;  // some of its accesses
    uint8_t changes = 0;         // those of its last instruction
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
