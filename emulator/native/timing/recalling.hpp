// A pipeline that remembers what it has done (after FastSim: E. Schnarr and J. Larus, "Fast Out-Of-Order Processor
// Simulation Using Memoization", ASPLOS 1998). What a block takes follows from the state in which it finds the
// pipeline, and from how its accesses and its branch fare. So it is worked out in detail once for every such case; from
// then on memory and predictor hear of the block as ever, and the rest is recalled. No count or cycle shows which it
// was.
//
// How a pipeline plugs in: it derives from RecallingPipeline, and its blocks from RecalledBlock. It
// - calls `prepare_recall` for each block;
// - reaches memory and predictor through `surroundings_` alone, in program order;
// - counts into `counts_`, not into the totals;
// - saves all that can influence its future, with times relative to `now`, and nothing else: the less noise there is in
//   its states, the more is recalled. It may assume that at least EARLIEST cycles have passed.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "probes.hpp"
#include "timing/block_events.hpp"
#include "timing/front_end.hpp"
#include "timing/memo.hpp"
#include "timing/pipeline.hpp"
#include "timing/recall_mode.hpp"
#include "timing/state_bytes.hpp"
#include "timing/surroundings.hpp"

namespace perfemu {

struct alignas(64) RecalledBlock : PreparedBlock {
    // What can happen to it, as numbers for Memo: from here on, for its branch, OUTCOMES; then for each of its events
    // one. All of them twice, because the line of its first instruction is fetched or was fetched before.
    uint32_t first_case = 0;
    BlockEvents events;
};

class RecallingPipeline : public Pipeline {
  public:
    unsigned retire(const PreparedBlock& block, const uint64_t* addresses, unsigned first, unsigned last, uint64_t next,
                    uint64_t limit) final;
    void retire_whole(const PreparedBlock& block, const uint64_t* addresses, uint64_t next) final;
    void iterate(const PreparedBlock& block, const uint64_t* addresses) final;
    void complete() final;
    void elapse(uint64_t cycles) final;
    void settle() final;

  protected:
    static constexpr uint64_t EARLIEST = 1 << 12;

    RecallingPipeline(const Config& config, MemorySystem& memory, BranchUnit& branches, uint64_t* totals);
    void prepare_recall(RecalledBlock& block, uint64_t address, std::span<const TimedOp> ops,
                        std::span<const AccessSite> sites);
    void count(Probe probe, uint64_t amount = 1) { counts_[static_cast<unsigned>(probe)] += amount; }

    // As the functions of Pipeline, in detail.
    virtual unsigned work(const PreparedBlock& block, const uint64_t* addresses, unsigned first, unsigned last,
                          uint64_t next, uint64_t limit) = 0;
    virtual void work_iteration(const PreparedBlock& block, const uint64_t* addresses) = 0;
    virtual void work_to_end() {}
    virtual void work_kernel(uint64_t cycles) = 0;

    // Between blocks. `now` is a cycle before which nothing will ask for data, nor fetch more than
    // `fetch_ahead_cycles` before it. The last fetched line, which is an address, is no part of the saved state.
    struct Moment {
        uint64_t now = 0;
        uint64_t line = 0;
    };
    virtual Moment moment() const = 0;
    virtual void save(StateWriter& state) const = 0;
    virtual void restore(StateReader& state, const Moment& moment) = 0;

    MemorySystem& memory_;
    Surroundings surroundings_;
    FrontEnd front_;
    // By probe, and behind them what MemorySystem has not counted (Surroundings::touches).
    using Counts = std::array<uint64_t, PROBE_COUNT + Surroundings::TOUCHES>;
    Counts counts_{};  // since the last `settle`

  private:
    // A block on its way from `state_` at `moment_`.
    struct Walk {
        const RecalledBlock& block;
        const uint64_t* addresses;
        uint64_t next;
    };
    static constexpr uint32_t OUTCOMES = 8;
    static uint32_t outcome(Prediction prediction, bool taken) { return 2 * static_cast<uint32_t>(prediction) + taken; }
    uint32_t first_outcome(const RecalledBlock& block, bool fetches_first) const {
        return block.first_case + OUTCOMES * fetches_first;
    }
    uint32_t case_of(const RecalledBlock& block, unsigned event) const {
        return block.first_case + 2 * OUTCOMES + 2 * event + fetches_first(block);
    }
    bool fetches_first(const RecalledBlock& block) const {
        return (block.events.address & front_.line_mask) != moment_.line;
    }

    bool recognize();
    void forget();
    void wake();
    Memo::State save_state();
    [[gnu::noinline]] Memo::State follow_fetch(Memo::State at, const Walk& walk, const BlockEvents::Part* fetch,
                                               size_t next_site);
    [[gnu::noinline]] Memo::State follow_access(Memo::State at, const Walk& walk, const BlockEvents::Part* fetch,
                                                size_t site);
    Memo::State follow(Memo::State at, const Walk& walk, unsigned event, Request request,
                       const Surroundings::Access& access);
    [[gnu::noinline]] void learn(const Walk& walk, unsigned told);
    void tell(const Walk& walk, unsigned told);
    void remember(const Walk& walk, const Counts& before);
    [[gnu::noinline]] void check(const Walk& walk, const Memo::Step& step);

    uint64_t* totals_;
    RecallMode mode_;
    uint32_t next_case_ = 0;
    Memo memo_;
    Memo::State state_ = Memo::NONE;  // if it is known
    Moment moment_;                   // ... and when it is
    bool awake_ = true;               // the pipeline itself is in that state; always so if it is not known
    StateWriter bytes_;

    // To learn takes ten times as long as to work. If it was for nothing, because a program does not do the same again,
    // it is left alone for a while: so many lessons, at less than so many cycles each.
    static constexpr uint64_t MANY_LESSONS = 1 << 14, TOO_FEW_CYCLES = 64, REST_CYCLES = 1 << 20;
    uint64_t learned_ = 0, learned_from_ = 0;
    uint64_t rests_until_ = 0;
};

}  // namespace perfemu
