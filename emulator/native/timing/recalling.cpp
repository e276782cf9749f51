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
    block.events.assign(address, ops, sites, memory_);
    block.first_case = next_case_;
    const uint32_t cases = (2 * OUTCOMES + 2 * block.events.count() + OUTCOMES - 1) & ~(OUTCOMES - 1);  // for `way`
    // Where such a branch goes, which is no case, says how much of an aligned piece is fetched.
    const BranchKind branch = block.events.branch;
    const bool indirect =
        branch == BranchKind::INDIRECT || branch == BranchKind::INDIRECT_CALL || branch == BranchKind::RETURN;
    if (front_.aligned && indirect) block.events.listed = false;
    if (next_case_ > std::numeric_limits<uint32_t>::max() - cases)
        block.events.listed = false;
    else
        next_case_ += cases;
    block.assign_batch();
}

// From there on. `RESUMED`: what came before has been asked already, and the predictor of the branch.
template <bool RESUMED>
inline void RecallingPipeline::replay(const Walk& walk, Place place) {
    const RecalledBlock& block = walk.block;
    const BlockEvents& events = block.events;
    const uint64_t *const addresses = walk.addresses, end = events.end(), next = walk.next;
    const uint64_t now = base_;
    const unsigned known_lines = walk.known_lines;
    const uint32_t first_what = first_outcome(block, fetches_first(block));
    Position at{state_, last_};
    memo_.prefetch(memo_[last_], next != end);
    const BlockEvents::Part* const fetches = events.parts.data();
    const BlockEvents::Part* const accesses = fetches + events.fetches;
    uint64_t line = (events.address & front_.line_mask) - place.fetch * front_.line_mask;
    while (true) {
        if (place.fetch >= known_lines && !memory_.filtered_fetch_by(now - front_.ahead, line)) [[unlikely]] {
            at = ask_fetch(at, walk, place);
            if (at.state == BlockMemo::NO_STATE) return;
        }
        for (; place.site != fetches[place.fetch].fetch.behind; ++place.site) {
            if (memory_.filtered_hit_by(now, addresses[place.site], accesses[place.site].shape)) [[likely]]
                continue;
            at = ask_access(at, walk, place);
            if (at.state == BlockMemo::NO_STATE) return;
        }
        if (++place.fetch == events.fetches) break;
        line -= front_.line_mask;
    }
    Prediction prediction = Prediction::RIGHT;
    if constexpr (RESUMED)
        prediction = *walk.prediction;
    else if (events.branch != BranchKind::NONE)
        prediction = environment_.branches.learn(events.address + events.branch_offset, events.branch, next, end);
    const uint32_t which = outcome(prediction, next != end);
    BlockMemo::Transition* const step = memo_.find(memo_[at.last], way(which), at.state, first_what + which);
    if (!step || mode_ == RecallMode::CHECK) [[unlikely]] {
        end_unknown(at, walk, prediction, step);
        if (!step) return;
    }
    memo_.take(*step);
    advance(*step, now + step->cycles, line);
}

void RecallingPipeline::retire_whole(const PreparedBlock& prepared, const uint64_t* addresses, uint64_t next) {
    const RecalledBlock& block = static_cast<const RecalledBlock&>(prepared);
    const BlockEvents& events = block.events;
    if (!events.listed || (!in_memo() && !enter_memo())) [[unlikely]] {
        leave_memo();
        run(block, addresses, 0, block.instructions, next, NO_LIMIT);
        return;
    }
    replay<false>({block, addresses, next, (events.address & front_.line_mask) == line_}, {});
}

void RecallingPipeline::replay_rest(const Walk& walk, Place from) { replay<true>(walk, from); }

// Of how the block ends, nothing is known, or it is to be checked.
void RecallingPipeline::end_unknown(Position at, const Walk& walk, Prediction prediction, BlockMemo::Transition* step) {
    if (at.state == state_) environment_.log.begin();
    Walk whole = walk;
    whole.prediction = prediction;
    if (step)
        check_walk(whole, *step);
    else
        record(whole, walk.block.events.count());
}

RecallingPipeline::Position RecallingPipeline::ask_fetch(Position at, const Walk& walk, Place place) {
    const BlockEvents& events = walk.block.events;
    return ask(at, walk, events.event_of_fetch(place.fetch, place.site), Request::FETCH,
               {.address = (events.address & front_.line_mask) - place.fetch * front_.line_mask});
}

RecallingPipeline::Position RecallingPipeline::ask_access(Position at, const Walk& walk, Place place) {
    const BlockEvents& events = walk.block.events;
    const auto [size, elements, offset] = events.accesses[place.site];
    const bool stores = events.parts.data()[events.fetches + place.site].shape.stores();
    return ask(at, walk, events.event_of_access(place.fetch, place.site), stores ? Request::STORE : Request::LOAD,
               {walk.addresses[place.site], size, events.address + offset, elements});
}

// An event is no mere hit: memory is asked at the cycle at which it was asked when this happened before. Goes on to
// what this leads to. None: it never happened, and the block has been executed.
RecallingPipeline::Position RecallingPipeline::ask(Position at, const Walk& walk, unsigned event, Request request,
                                                   const ReplayEnvironment::Access& access) {
    if (at.state == state_) environment_.log.begin();
    BlockMemo::Transition* const question = memo_.find(memo_[at.last], EVENT, at.state, case_of(walk.block, event));
    if (!question) {
        record(walk, event);
        return {};
    }
    const uint64_t asked = base_ + question->cycles;  // of a fetch: before now
    memo_.prefetch(*question, EVENT);
    const uint64_t delay = environment_.ask(event, request, access, asked) - asked;
    BlockMemo::Transition* const answer =
        delay >> 32 ? nullptr : memo_.find(*question, EVENT, question->to, static_cast<uint32_t>(delay));
    if (!answer) {
        record(walk, event + 1);
        return {};
    }
    memo_.prefetch(*answer, walk.next != walk.block.events.end());
    return {answer->to, memo_.number(*answer)};
}

// Executes the block in detail. `known`: the events before this one have happened.
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
        BlockMemo::Transition& question = get(at, case_of(block, answer.event));
        question.cycles = static_cast<int32_t>(cycles);
        at = get(question.to, static_cast<uint32_t>(answer.delay)).to;
    }
    const auto cycles = static_cast<int64_t>(now() - base_);
    const auto retired = static_cast<int64_t>(cycle_ - base_);
    if (!fits(cycles) || !fits(retired)) return;
    const uint32_t what =
        first_outcome(block, fetches_first(block)) + outcome(log.prediction, walk.next != block.events.end());
    line_ = fetched_line();
    number_state();
    BlockMemo::Transition& step = memo_.add(at, what, state_);
    step.cycles = static_cast<int32_t>(cycles);
    last_ = memo_.number(step);
    memo_.set_retired(step, static_cast<int32_t>(retired));
    memo_.set_counts(last_, counts_.amounts, before.amounts);
}

// What is about to be recalled is executed, too, and not counted.
void RecallingPipeline::check_walk(const Walk& walk, const BlockMemo::Transition& step) {
    const PipelineCounts before = counts_;
    restore_members();
    run_walk(walk, walk.block.events.count());
    const bool same = !environment_.log.contradicted && cycle_ == base_ + memo_.retired(step);
    check(memo_.number(step), before, same);
}

bool RecallingPipeline::enter_memo() {
    base_ = now();
    line_ = fetched_line();
    return line_ != FrontEnd::NO_LINE && base_ >= std::max(EARLIEST, rests_until_) && MemoizingPipeline::enter_memo();
}

}  // namespace perfemu
