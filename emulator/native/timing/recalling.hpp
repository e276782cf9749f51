// A pipeline that remembers what it has done (after FastSim: E. Schnarr and J. Larus, "Fast Out-Of-Order Processor
// Simulation Using Memoization", ASPLOS 1998). What a block takes follows from the state in which it finds the
// pipeline, and from how its accesses and its branch fare. So it is executed in detail once for every such case;
// from then on memory and predictor are asked as ever, and the rest is replayed. No count or cycle shows which
// it was.
//
// How a pipeline plugs in, besides what MemoizingPipeline wants: its blocks derive from RecalledBlock. It
// - calls `prepare_recall` for each block;
// - reaches memory and predictor through `environment_` alone, in program order;
// - saves no fetched line (`fetched_line`), and may assume that at least EARLIEST cycles have passed. From now() on it
//   asks for data, and from `fetch_ahead_cycles` before it for lines.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "timing/block_memo.hpp"
#include "timing/block_requests.hpp"
#include "timing/front_end.hpp"
#include "timing/memoizing_pipeline.hpp"
#include "timing/recalled_batch.hpp"
#include "timing/replay_environment.hpp"

namespace perfemu {

class RecallingPipeline : public MemoizingPipeline<BlockMemo> {
  public:
    void retire_whole(const PreparedBlock& block, const uint64_t* addresses, uint64_t next) final;
    void retire_all(std::span<const RunBlock> blocks, const uint64_t* addresses) final;

  protected:
    static constexpr uint64_t EARLIEST = 1 << 12;

    RecallingPipeline(const Config& config, MemorySystem& memory, BranchUnit& branches, uint64_t* totals);
    void prepare_recall(RecalledBlock& block, uint64_t address, std::span<const TimedOp> ops,
                        std::span<const AccessSite> sites);
    // The line that it has fetched last.
    virtual uint64_t fetched_line() const = 0;

    ReplayEnvironment environment_;
    FrontEnd front_;
    uint64_t line_ = 0;  // fetched last before `state_`

  private:
    // A block on its way from `state_`.
    struct Walk {
        const RecalledBlock& block;
        const uint64_t* addresses;
        uint64_t next;
        unsigned known_lines = 0;                   // so many of its lines have been fetched, maybe for others
        std::optional<Prediction> prediction = {};  // of its branch, if the predictor has been asked
    };
    // A state, and the transition that has led there.
    struct Position {
        BlockMemo::State state = BlockMemo::NO_STATE;
        uint32_t last = BlockMemo::NONE;
    };
    static constexpr uint32_t OUTCOMES = RecalledBatch::OUTCOMES;
    // Ways to go on from a transition, see BlockMemo::find: by a branch that is predicted right and is not taken or is,
    // or by another request.
    static constexpr uint32_t ANSWER = 2;
    static uint32_t way(uint32_t outcome) { return std::min(outcome % OUTCOMES, ANSWER); }
    // How far a block has been replayed.
    struct ResumePoint {
        size_t fetch = 0, site = 0;
    };
    static uint32_t outcome(Prediction prediction, bool taken) { return 2 * static_cast<uint32_t>(prediction) + taken; }
    uint32_t first_outcome(const RecalledBlock& block, bool fetches_first) const {
        return block.first_case + OUTCOMES * fetches_first;
    }
    uint32_t case_of(const RecalledBlock& block, unsigned number) const {
        return block.first_case + 2 * OUTCOMES + 2 * number + fetches_first(block);
    }
    bool fetches_first(const RecalledBlock& block) const {
        return (block.requests.address & front_.line_mask) != line_;
    }

    bool enter_memo();
    template <bool RESUMED>
    [[gnu::always_inline]] void replay(const Walk& walk, ResumePoint point);
    void replay_rest(const Walk& walk, ResumePoint point);
    [[gnu::noinline]] Position ask_fetch(Position at, const Walk& walk, ResumePoint point);
    [[gnu::noinline]] Position ask_access(Position at, const Walk& walk, ResumePoint point);
    Position ask(Position at, const Walk& walk, unsigned number, Request kind, const ReplayEnvironment::Packet& access);
    [[gnu::noinline]] void end_unknown(Position at, const Walk& walk, Prediction prediction,
                                       BlockMemo::Transition* transition);
    [[gnu::noinline]] void record(const Walk& walk, unsigned known);
    void run_walk(const Walk& walk, unsigned known);
    void add_to_memo(const Walk& walk, const PipelineCounts& before);
    [[gnu::noinline]] void check_walk(const Walk& walk, const BlockMemo::Transition& transition);

    // By this transition, to this cycle and line.
    void advance(const BlockMemo::Transition& transition, uint64_t now, uint64_t line) {
        state_ = transition.to;
        last_ = memo_.number(transition);
        base_ = now;
        line_ = line;
        cycle_ = now - transition.cycles + memo_.retired(transition);
        restored_ = false;
    }

    // By batches, see recalling_batch.cpp: what runs, and how far it has been replayed.
    struct BatchProgress {
        const RunBlock* run;
        const uint64_t* addresses;
        uint64_t last_line;         // fetched before
        size_t block = 0;           // the blocks before have been replayed
        size_t filtered_lines = 0;  // at least those of these blocks
        size_t unusual = 0;         // blocks with more than filtered hits
    };
    void replay_batch(BatchProgress& progress);
    void resolve_branches(const BatchProgress& progress);
    void recall(BatchProgress& progress, size_t end);
    [[gnu::noinline]] void recall_slowly(const Walk& walk, uint32_t what);
    void replay_further(BatchProgress& progress, ResumePoint point);
    // So that every access that finds its line and page is a filtered hit.
    bool all_there(uint64_t cycle) const { return environment_.arrived_by <= cycle; }
    uint64_t line_before(const BatchProgress& progress, size_t block) const;
    ResumePoint point_of_line(const BatchProgress& progress, size_t block) const;
    ResumePoint point_of_site(const BatchProgress& progress, size_t block, size_t site) const;
    Walk walk_of(const BatchProgress& progress, size_t block) const;

    uint32_t next_case_ = 0;
    std::unique_ptr<RecalledBatch> batch_;  // null where filtered hits cannot be known before other accesses

    // Where more than one in so many blocks has more than filtered hits, the next batches are replayed block by block.
    static constexpr unsigned FEW_UNUSUAL = 4, REST_BATCHES = 16;
    unsigned batches_to_rest_ = 0;

    // To record takes ten times as long as to execute. If it was for nothing, because a program does not do the same
    // again, it is left alone for a while: so many records, at less than so many cycles each.
    static constexpr uint64_t MANY_RECORDS = 1 << 14, TOO_FEW_CYCLES = 64, REST_CYCLES = 1 << 20;
    uint64_t recorded_ = 0, recorded_from_ = 0;
    uint64_t rests_until_ = 0;
};

}  // namespace perfemu
