// What pipelines with a memo have in common. Between blocks such a pipeline is in one of two places: in its memo, where
// its state is a number; or outside, where its own members are its state. From a state in the memo a block that is
// retired as a whole takes a transition; where there is none, the block is executed, and recorded.
//
// How a pipeline plugs in: it derives from this (in order: RecallingPipeline; out of order: OutOfOrder), and
// - counts into `counts_`, not into the totals;
// - saves all that can influence its future, with times relative to `base_`, and nothing else: the less noise there is
//   in its states, the more is found in the memo.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>

#include "timing/memo.hpp"
#include "timing/pipeline.hpp"
#include "timing/pipeline_counts.hpp"
#include "timing/recall_mode.hpp"
#include "timing/state_bytes.hpp"

namespace perfemu {

template <typename MemoType>
class MemoizingPipeline : public Pipeline {
  public:
    unsigned retire(const PreparedBlock& block, const uint64_t* addresses, unsigned first, unsigned last, uint64_t next,
                    uint64_t limit) final {
        if (first >= last) return first;
        if (first == 0 && last == block.instructions && limit == NO_LIMIT) {
            retire_whole(block, addresses, next);
            return last;
        }
        leave_memo();
        return run(block, addresses, first, last, next, limit);
    }
    void iterate(const PreparedBlock& block, const uint64_t* addresses) final {
        leave_memo();
        run_iteration(block, addresses);
    }
    void complete() final {
        leave_memo();
        run_to_end();
    }
    void elapse(uint64_t cycles) final {
        leave_memo();
        run_kernel(cycles);
    }
    void settle() final {
        memo_.settle(counts_.amounts);
        settle_executed();
    }
    void settle_executed() final { counts_.settle(totals_, memory_); }

  protected:
    using State = typename MemoType::State;

    MemoizingPipeline(const Config& config, MemorySystem& memory, uint64_t* totals)
        : memory_(memory), totals_(totals), mode_(recall_mode(config.table("pipeline"))) {}

    // As the functions of Pipeline, outside the memo.
    virtual unsigned run(const PreparedBlock& block, const uint64_t* addresses, unsigned first, unsigned last,
                         uint64_t next, uint64_t limit) = 0;
    virtual void run_iteration(const PreparedBlock& block, const uint64_t* addresses) = 0;
    virtual void run_to_end() {}
    virtual void run_kernel(uint64_t cycles) = 0;

    // The cycle that the next instruction will issue or be dispatched in at the earliest.
    virtual uint64_t now() const = 0;
    // False: something is too far ahead for a state of the memo. Later `base_` may be another.
    virtual bool save(StateWriter& state) = 0;
    virtual void restore(StateReader& state) = 0;

    void count(PipelineProbe probe, uint64_t amount = 1) { counts_.add(probe, amount); }

    bool in_memo() const { return state_ != MemoType::NO_STATE; }
    // False: it stays outside.
    bool enter_memo() {
        last_ = MemoType::NONE;
        return mode_ != RecallMode::NEVER && number_state();
    }
    void leave_memo() {
        if (in_memo()) restore_members();
        state_ = MemoType::NO_STATE;
    }
    // In the memo: makes the pipeline's members say the same.
    void restore_members() {
        if (std::exchange(restored_, true)) return;
        StateReader state(memo_.bytes(state_));
        restore(state);
    }
    // Whether the members' state, as it is now, can be one of the memo, which it then is in.
    bool number_state() {
        return take_state([this](std::span<const uint8_t> bytes) { return memo_.state(bytes); });
    }
    // The same, but only if it has been in that state before.
    bool find_state() {
        return take_state([this](std::span<const uint8_t> bytes) { return memo_.known_state(bytes); });
    }
    // False: it had too much, and has nothing now.
    bool memo_has_room() {
        if (!memo_.full()) return true;
        memo_.settle(counts_.amounts);
        memo_.clear();
        state_ = MemoType::NO_STATE;
        last_ = MemoType::NONE;
        return false;
    }

    // For RecallMode::CHECK: a block that is about to take this transition from `state_` has been executed, too, since
    // it had counted `before`. Both must be the same, also what the client compares; nothing of the second is counted.
    void check(uint32_t number, const PipelineCounts& before, bool same) {
        const PipelineCounts executed = std::exchange(counts_, before);
        PipelineCounts recalled = before;
        memo_.count(number, 1, recalled.amounts);
        const State state = state_;
        const uint64_t base = base_;
        number_state();
        same &= state_ == memo_[number].to && base_ == base + static_cast<uint64_t>(memo_[number].cycles);
        if (!same || executed != recalled) throw std::logic_error("a block was recalled otherwise than it executes");
        state_ = state;
        base_ = base;
    }

    MemorySystem& memory_;
    uint64_t* totals_;
    // What every block reads lies together.
    State state_ = MemoType::NO_STATE;  // the memo's; NO_STATE: the pipeline is outside
    uint32_t last_ = MemoType::NONE;    // the transition that led there, if it is known
    uint64_t base_ = 0;                 // the cycle that the state's times are relative to
    RecallMode mode_;
    bool restored_ = true;  // the members say the same as the state; outside always
    MemoType memo_;
    PipelineCounts counts_;

  private:
    template <typename Number>
    bool take_state(Number number) {
        base_ = now();
        bytes_.clear();
        state_ = save(bytes_) ? number(bytes_.bytes()) : MemoType::NO_STATE;
        return in_memo();
    }

    StateWriter bytes_;
};

}  // namespace perfemu
