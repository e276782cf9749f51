// A timing model: is given every instruction as it retires, in order, and says when.
//
// The same instructions must give the same time however they are cut into blocks: also where a block is entered in the
// middle, stepped, or cut short by a fault. So whatever goes from one instruction to
// the next (fusion, the fetch line, dependencies) is the pipeline's state, not the block's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "cache/memory_system.hpp"
#include "config.hpp"
#include "level.hpp"
#include "ops/access.hpp"
#include "ops/branch_kind.hpp"
#include "ops/timed_op.hpp"
#include "predictor/branch_unit.hpp"

namespace perfemu {

// A block in a pipeline's own form, made once.
struct PreparedBlock {
    virtual ~PreparedBlock() = default;

    uint32_t instructions = 0, sites = 0;
    // The branch that it ends with, for who hears of it: no pipeline's matter.
    BranchKind ending = BranchKind::NONE;
    uint8_t ending_length = 0;  // bytes
    Level level = Level::USER;  // at which it executes
    uint32_t size = 0;          // bytes of all
};

// A block that has run as a whole.
struct RunBlock {
    const PreparedBlock* block;
    uint64_t address;
};

class Pipeline {
  public:
    virtual ~Pipeline() = default;

    // By the name in `config`'s [pipeline].model. Throws std::invalid_argument. `totals` has PROBE_COUNT entries.
    static std::unique_ptr<Pipeline> make(const Config& config, MemorySystem& memory, BranchUnit& branches,
                                          uint64_t* totals);
    static std::vector<std::string> names();

    std::unique_ptr<PreparedBlock> prepare(uint64_t address, std::span<const TimedOp> ops,
                                           std::span<const AccessSite> sites) {
        std::unique_ptr<PreparedBlock> block = make_block(address, ops, sites);
        block->instructions = static_cast<uint32_t>(ops.size());
        block->sites = static_cast<uint32_t>(sites.size());
        return block;
    }

    // The instructions [first, last) of a block retire. `addresses` holds those of all the block's sites (only those of
    // the given instructions are read). Execution goes on at `next`, which tells where a branch at `last - 1` went.
    // Stops after the first instruction that retires at or after cycle `limit`; returns the index after the last one
    // that retired.
    virtual unsigned retire(const PreparedBlock& block, const uint64_t* addresses, unsigned first, unsigned last,
                            uint64_t next, uint64_t limit = NO_LIMIT) = 0;
    static constexpr uint64_t NO_LIMIT = ~uint64_t{0};

    // As retire of all the block's instructions, without a limit. Some of what it counts may come to the totals only
    // with `settle`.
    virtual void retire_whole(const PreparedBlock& block, const uint64_t* addresses, uint64_t next) {
        retire(block, addresses, 0, block.instructions, next, NO_LIMIT);
    }
    // As retire_whole of each but the last, whose address only tells where execution goes on: `addresses` holds those
    // of the first block's sites, then the second's, and so on.
    virtual void retire_all(std::span<const RunBlock> blocks, const uint64_t* addresses) {
        for (const RunBlock *run = blocks.data(), *last = run + blocks.size() - 1; run < last; ++run) {
            __builtin_prefetch(run[1].block);
            retire_whole(*run->block, addresses, run[1].address);
            addresses += run->block->sites;
        }
    }
    // Brings the totals up to date. Comes every few million instructions at the latest: counts of 32 bits will do.
    virtual void settle() {}
    // Only with what has been executed since, not recalled: of few instructions that is quicker.
    virtual void settle_executed() { settle(); }

    // One iteration of a REP instruction, which is the only one of its block. `retire` comes later, when it is through:
    // that makes no access.
    virtual void iterate(const PreparedBlock& block, const uint64_t* addresses) = 0;

    // The kernel is entered: user mode ends when everything that has begun has completed.
    virtual void complete() {}

    // The kernel worked: everything before has completed, the pipeline starts anew.
    virtual void elapse(uint64_t cycles) = 0;

    // When the last instruction retired.
    uint64_t cycle() const { return cycle_; }

    // Of an instruction that has just retired alone, and with a limit: when the back end got it, when it was issued to
    // a unit, and when its results were there.
    struct Stages {
        uint64_t dispatched, issued, completed;
    };
    virtual Stages last_stages() const { return {cycle_, cycle_, cycle_}; }

  protected:
    virtual std::unique_ptr<PreparedBlock> make_block(uint64_t address, std::span<const TimedOp> ops,
                                                      std::span<const AccessSite> sites) = 0;

    uint64_t cycle_ = 0;
};

}  // namespace perfemu
