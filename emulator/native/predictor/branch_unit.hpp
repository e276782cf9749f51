// Everything that predicts branches: direction, targets, returns.
//
// Only what retires is heard: a wrong path trains nothing, and histories are of real outcomes.
#pragma once

#include <cstdint>
#include <memory>

#include "config.hpp"
#include "ops/timed_op.hpp"
#include "predictor/direction.hpp"
#include "predictor/gshare.hpp"
#include "predictor/indirect.hpp"
#include "predictor/return_stack.hpp"
#include "predictor/target_buffer.hpp"
#include "probes.hpp"

namespace perfemu {

enum class Prediction : uint8_t {
    RIGHT,
    LATE,   // direction right, but the branch was not known at fetch where it goes: decode finds it
    WRONG,  // found when the branch executes
};

// [branch], or an empty table.
const Config& branch_table(const Config& config);

// Without a [branch] table every branch is predicted right, and so is what a part would do that the table leaves out:
// `direction`, `btb_entries`, `return_stack`, `indirect`.
class BranchUnit {
  public:
    BranchUnit(const Config& config, uint64_t* totals);

    // A branch retires: predicts, learns, and fires the probes of what went wrong. `next` is where it went,
    // `fallthrough` the address behind it.
    Prediction resolve(uint64_t pc, BranchKind kind, uint64_t next, uint64_t fallthrough) {
        if (kind == BranchKind::CONDITIONAL) return conditional(pc, next, fallthrough);
        if (kind == BranchKind::DIRECT) return found(pc);
        return other(pc, kind, next, fallthrough);
    }
    // The same for callers who do not branch on how it was predicted: then the host need not foresee it either.
    [[gnu::always_inline]] Prediction learn(uint64_t pc, BranchKind kind, uint64_t next, uint64_t fallthrough) {
        if (kind != BranchKind::CONDITIONAL || !gshare_) return learn_by_kind(pc, kind, next, fallthrough);
        bool taken = next != fallthrough;
        path_ = path_ << 1 | static_cast<uint64_t>(taken);
        uint64_t wrong = gshare_->learn(pc, taken) ^ taken, late = 0;
        totals_[static_cast<unsigned>(Probe::BR_MISPREDICTED)] += wrong;
        totals_[static_cast<unsigned>(Probe::BR_COND_MISPREDICTED)] += wrong;
        if (taken & !targets_.knows_best(pc)) [[unlikely]]
            late = learn_target(pc, wrong);
        static_assert(static_cast<int>(Prediction::LATE) == 1 && static_cast<int>(Prediction::WRONG) == 2);
        return static_cast<Prediction>(2 * wrong + late);
    }

    // As `learn` of many branches, whatever else comes between, with what that takes kept in the host's registers.
    // Until `end` nobody else may ask the unit.
    class BatchUpdate {
      public:
        // `Block` has branch, branch_pc() and end. Execution goes on at `next` behind it.
        template <typename Block>
        [[gnu::always_inline]] void learn(const Block& block, uint64_t next) {
            const uint64_t pc = block.branch_pc();
            if (block.branch == BranchKind::CONDITIONAL) [[likely]] {
                const bool taken = next != block.end;
                path_ = path_ << 1 | static_cast<uint64_t>(taken);
                const uint64_t mistaken = walk_.learn(pc, taken) ^ taken;
                wrong_ += mistaken;
                if (taken & !best_.is(pc)) [[unlikely]]
                    unit_.learn_target(pc, mistaken);
            } else if (block.branch != BranchKind::NONE) {
                learn_unconditional(pc, block.branch, next, block.end);
            }
        }
        void end() {
            unit_.path_ = path_;
            unit_.gshare_->set_history(walk_.history);
            unit_.totals_[static_cast<unsigned>(Probe::BR_MISPREDICTED)] += wrong_;
            unit_.totals_[static_cast<unsigned>(Probe::BR_COND_MISPREDICTED)] += wrong_;
        }

      private:
        friend class BranchUnit;
        [[gnu::always_inline]] void learn_unconditional(uint64_t pc, BranchKind kind, uint64_t next,
                                                        uint64_t fallthrough) {
            bool right = kind == BranchKind::DIRECT;
            if (kind == BranchKind::CALL) {
                unit_.returns_.push(fallthrough);
                right = true;
            } else if (kind == BranchKind::RETURN && unit_.returns_.expects(next)) {
                unit_.returns_.pop(next);
                right = true;
            }
            if (right && best_.is(pc)) return;
            if (right) {
                unit_.found(pc);
                return;
            }
            unit_.path_ = path_;
            unit_.gshare_->set_history(walk_.history);
            unit_.learn_by_kind(pc, kind, next, fallthrough);
            path_ = unit_.path_;
        }

        explicit BatchUpdate(BranchUnit& unit)
            : unit_(unit), walk_(unit.gshare_->walk()), best_(unit.targets_.best()), path_(unit.path_) {}

        BranchUnit& unit_;
        Gshare::Walk walk_;
        const TargetBuffer::Best best_;
        uint64_t path_, wrong_ = 0;
    };
    bool updates_by_batch() const { return gshare_; }
    BatchUpdate begin_update() { return BatchUpdate(*this); }
    // As `learn` of one branch, if the block ends with one.
    template <typename Block>
    void learn(const Block& block, uint64_t next) {
        if (block.branch != BranchKind::NONE) learn(block.branch_pc(), block.branch, next, block.end);
    }

    void archive(Archive& state) {
        if (direction_) direction_->archive(state);
        if (indirect_) indirect_->archive(state);
        state(targets_, returns_, path_);
    }

  private:
    Prediction conditional(uint64_t pc, uint64_t next, uint64_t fallthrough) {
        bool taken = next != fallthrough;
        path_ = path_ << 1 | static_cast<uint64_t>(taken);
        bool predicted = gshare_ ? gshare_->learn(pc, taken) : direction_ ? direction_->learn(pc, taken) : taken;
        if (predicted != taken) [[unlikely]]
            return mispredicted(pc, taken);
        return taken ? found(pc) : Prediction::RIGHT;
    }
    [[gnu::noinline]] Prediction learn_by_kind(uint64_t pc, BranchKind kind, uint64_t next, uint64_t fallthrough);
    // Of a branch that was taken. Returns whether that makes it late.
    [[gnu::noinline]] bool learn_target(uint64_t pc, bool mispredicted);
    Prediction other(uint64_t pc, BranchKind kind, uint64_t next, uint64_t fallthrough);
    Prediction mispredicted(uint64_t pc, bool taken);
    Prediction indirect(uint64_t pc, uint64_t target);
    Prediction returns(uint64_t pc, uint64_t target);
    // Where a branch goes is right; was it known at fetch?
    Prediction found(uint64_t pc) {
        if (targets_.learn(pc)) [[likely]]
            return Prediction::RIGHT;
        count(Probe::BTB_MISS);
        return Prediction::LATE;
    }
    void count(Probe probe) { totals_[static_cast<unsigned>(probe)]++; }

    uint64_t* totals_;
    std::unique_ptr<DirectionPredictor> direction_;  // null: always right; so for the others
    Gshare* gshare_ = nullptr;                       // direction_, if it is one
    std::unique_ptr<IndirectPredictor> indirect_;
    TargetBuffer targets_;
    ReturnStack returns_;
    uint64_t path_ = 0;  // one bit of each conditional branch, four of each indirect one; the newest lowest
};

}  // namespace perfemu
