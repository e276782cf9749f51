#include "timing/recalling.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "timing/execution.hpp"

namespace perfemu {

RecallingPipeline::RecallingPipeline(const Config& config, MemorySystem& memory, BranchUnit& branches, uint64_t* totals)
    : MemoizingPipeline(config, memory, totals), environment_(memory, branches), front_(config, environment_) {
    // Batches need to know that what is in the first caches has arrived: not so where prefetchers bring it.
    bool arrived = memory.independent_sides();
    for (const char* cache : {"l1i", "l1d"})
        arrived &= !(config.has_table(cache) && config.table(cache).has("prefetchers"));
    if (arrived) batch_ = std::make_unique<RecalledBatch>();
}

void RecallingPipeline::prepare_recall(RecalledBlock& block, uint64_t address, std::span<const TimedOp> ops,
                                       std::span<const AccessSite> sites) {
    block.requests.assign(address, ops, sites, memory_);
    block.first_case = next_case_;
    const uint32_t cases = (2 * OUTCOMES + 2 * block.requests.count() + OUTCOMES - 1) & ~(OUTCOMES - 1);  // for `way`
    // Where such a branch goes, which is no case, says how much of an aligned piece is fetched.
    const BranchKind branch = block.requests.branch;
    const bool indirect =
        branch == BranchKind::INDIRECT || branch == BranchKind::INDIRECT_CALL || branch == BranchKind::RETURN;
    if (front_.aligned && indirect) block.requests.listed = false;
    if (next_case_ > std::numeric_limits<uint32_t>::max() - cases)
        block.requests.listed = false;
    else
        next_case_ += cases;
    block.assign_batch();
}

// From there on. `RESUMED`: what came before has been asked already, and the predictor of the branch.
template <bool RESUMED>
inline void RecallingPipeline::replay(const Walk& walk, ResumePoint point) {
    const RecalledBlock& block = walk.block;
    const BlockRequests& requests = block.requests;
    const uint64_t *const addresses = walk.addresses, end = requests.end(), next = walk.next;
    const uint64_t now = base_;
    const unsigned known_lines = walk.known_lines;
    const uint32_t first_what = first_outcome(block, fetches_first(block));
    Position at{state_, last_};
    memo_.prefetch(memo_[last_], next != end);
    const BlockRequests::Part* const fetches = requests.parts.data();
    const BlockRequests::Part* const accesses = fetches + requests.fetches;
    uint64_t line = (requests.address & front_.line_mask) - point.fetch * front_.line_mask;
    while (true) {
        if (point.fetch >= known_lines && !memory_.filtered_fetch_by(now - front_.ahead, line)) [[unlikely]] {
            at = ask_fetch(at, walk, point);
            if (at.state == BlockMemo::NO_STATE) return;
        }
        for (; point.site != fetches[point.fetch].fetch.sites_end; ++point.site) {
            if (memory_.filtered_hit_by(now, addresses[point.site], accesses[point.site].shape)) [[likely]]
                continue;
            at = ask_access(at, walk, point);
            if (at.state == BlockMemo::NO_STATE) return;
        }
        if (++point.fetch == requests.fetches) break;
        line -= front_.line_mask;
    }
    Prediction prediction = Prediction::RIGHT;
    if constexpr (RESUMED)
        prediction = *walk.prediction;
    else if (requests.branch != BranchKind::NONE)
        prediction = environment_.branches.learn(requests.address + requests.branch_offset, requests.branch, next, end);
    const uint32_t which = outcome(prediction, next != end);
    BlockMemo::Transition* const transition = memo_.find(memo_[at.last], way(which), at.state, first_what + which);
    if (!transition || mode_ == RecallMode::CHECK) [[unlikely]] {
        end_unknown(at, walk, prediction, transition);
        if (!transition) return;
    }
    memo_.take(*transition);
    advance(*transition, now + transition->cycles, line);
}

void RecallingPipeline::retire_whole(const PreparedBlock& prepared, const uint64_t* addresses, uint64_t next) {
    const RecalledBlock& block = static_cast<const RecalledBlock&>(prepared);
    const BlockRequests& requests = block.requests;
    if (!requests.listed || (!in_memo() && !enter_memo())) [[unlikely]] {
        leave_memo();
        run(block, addresses, 0, block.instructions, next, NO_LIMIT);
        return;
    }
    replay<false>({block, addresses, next, (requests.address & front_.line_mask) == line_}, {});
}

void RecallingPipeline::replay_rest(const Walk& walk, ResumePoint point) { replay<true>(walk, point); }

// Of how the block ends, nothing is known, or it is to be checked.
void RecallingPipeline::end_unknown(Position at, const Walk& walk, Prediction prediction,
                                    BlockMemo::Transition* transition) {
    if (at.state == state_) environment_.log.begin();
    Walk whole = walk;
    whole.prediction = prediction;
    if (transition)
        check_walk(whole, *transition);
    else
        record(whole, walk.block.requests.count());
}

RecallingPipeline::Position RecallingPipeline::ask_fetch(Position at, const Walk& walk, ResumePoint point) {
    const BlockRequests& requests = walk.block.requests;
    return ask(at, walk, requests.number_of_fetch(point.fetch, point.site), Request::FETCH,
               {.address = (requests.address & front_.line_mask) - point.fetch * front_.line_mask});
}

RecallingPipeline::Position RecallingPipeline::ask_access(Position at, const Walk& walk, ResumePoint point) {
    const BlockRequests& requests = walk.block.requests;
    const auto [size, elements, offset] = requests.accesses[point.site];
    const bool stores = requests.parts.data()[requests.fetches + point.site].shape.stores();
    return ask(at, walk, requests.number_of_access(point.fetch, point.site), stores ? Request::STORE : Request::LOAD,
               {walk.addresses[point.site], size, requests.address + offset, elements});
}

// A request is no mere hit: memory is asked at the cycle at which it was asked when this happened before. Goes on to
// what this leads to. None: it never happened, and the block has been executed.
RecallingPipeline::Position RecallingPipeline::ask(Position at, const Walk& walk, unsigned number, Request kind,
                                                   const ReplayEnvironment::Packet& access) {
    if (at.state == state_) environment_.log.begin();
    BlockMemo::Transition* const question = memo_.find(memo_[at.last], ANSWER, at.state, case_of(walk.block, number));
    if (!question) {
        record(walk, number);
        return {};
    }
    const uint64_t asked = base_ + question->cycles;  // of a fetch: before now
    memo_.prefetch(*question, ANSWER);
    const uint64_t delay = environment_.ask(number, kind, access, asked) - asked;
    BlockMemo::Transition* const answer =
        delay >> 32 ? nullptr : memo_.find(*question, ANSWER, question->to, static_cast<uint32_t>(delay));
    if (!answer) {
        record(walk, number + 1);
        return {};
    }
    memo_.prefetch(*answer, walk.next != walk.block.requests.end());
    return {answer->to, memo_.number(*answer)};
}

// Executes the block in detail. `known`: the requests before this one have been made.
void RecallingPipeline::record(const Walk& walk, unsigned known) {
    if (in_memo()) restore_members();
    const PipelineCounts before = counts_;
    run_walk(walk, known);
    if (in_memo() && memo_has_room()) add_to_memo(walk, before);
    if (++recorded_ < MANY_RECORDS) return;
    recorded_ = 0;
    if (now() - recorded_from_ < MANY_RECORDS * TOO_FEW_CYCLES) {
        rests_until_ = now() + REST_CYCLES;
        state_ = BlockMemo::NO_STATE;
    }
    recorded_from_ = now();
}

void RecallingPipeline::run_walk(const Walk& walk, unsigned known) {
    ReplayLog& log = environment_.log;
    log.cycle = base_;
    log.fetch_cycle = base_ - front_.ahead;
    log.known = known;
    log.known_lines = walk.known_lines;
    if (walk.prediction) log.set_branch(*walk.prediction);
    environment_.begin(fetches_first(walk.block) ? 0 : 1, counts_.hits());
    run(walk.block, walk.addresses, 0, walk.block.instructions, walk.next, NO_LIMIT);
    environment_.end();
}

void RecallingPipeline::add_to_memo(const Walk& walk, const PipelineCounts& before) {
    const RecalledBlock& block = walk.block;
    auto fits = [](int64_t cycles) { return cycles == static_cast<int32_t>(cycles); };
    auto get = [this](BlockMemo::State from, uint32_t what) -> BlockMemo::Transition& {
        BlockMemo::Transition* known = memo_.find(from, what);
        return known ? *known : memo_.add(from, what, memo_.fresh());
    };
    const ReplayLog& log = environment_.log;
    BlockMemo::State at = std::exchange(state_, BlockMemo::NO_STATE);
    last_ = BlockMemo::NONE;
    for (const ReplayLog::Answer& answer : log.answers) {
        const auto cycles = static_cast<int64_t>(answer.asked - base_);
        if (answer.delay >> 32 || !fits(cycles)) return;
        BlockMemo::Transition& question = get(at, case_of(block, answer.number));
        question.cycles = static_cast<int32_t>(cycles);
        at = get(question.to, static_cast<uint32_t>(answer.delay)).to;
    }
    const auto cycles = static_cast<int64_t>(now() - base_);
    const auto retired = static_cast<int64_t>(cycle_ - base_);
    if (!fits(cycles) || !fits(retired)) return;
    const uint32_t what =
        first_outcome(block, fetches_first(block)) + outcome(log.prediction, walk.next != block.requests.end());
    line_ = fetched_line();
    number_state();
    BlockMemo::Transition& transition = memo_.add(at, what, state_);
    transition.cycles = static_cast<int32_t>(cycles);
    last_ = memo_.number(transition);
    memo_.set_retired(transition, static_cast<int32_t>(retired));
    memo_.set_counts(last_, counts_.amounts, before.amounts);
}

// What is about to be recalled is executed, too, and not counted.
void RecallingPipeline::check_walk(const Walk& walk, const BlockMemo::Transition& transition) {
    const PipelineCounts before = counts_;
    restore_members();
    run_walk(walk, walk.block.requests.count());
    const bool same = !environment_.log.contradicted && cycle_ == base_ + memo_.retired(transition);
    check(memo_.number(transition), before, same);
}

bool RecallingPipeline::enter_memo() {
    base_ = now();
    line_ = fetched_line();
    return line_ != FrontEnd::NO_LINE && base_ >= std::max(EARLIEST, rests_until_) && MemoizingPipeline::enter_memo();
}

}  // namespace perfemu
