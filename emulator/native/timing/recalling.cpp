#include "timing/recalling.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "timing/execution.hpp"

namespace perfemu {

RecallingPipeline::RecallingPipeline(const Config& config, MemorySystem& memory, BranchUnit& branches, uint64_t* totals)
    : memory_(memory), environment_(memory, branches), front_(config, environment_), totals_(totals),
      mode_(recall_mode(config.table("pipeline"))) {
    // Batches need to know that what is in the first caches has arrived, which prefetchers there do not tell.
    bool foreseen = memory.independent_sides();
    for (const char* cache : {"l1i", "l1d"})
        foreseen &= !(config.has_table(cache) && config.table(cache).has("prefetchers"));
    if (foreseen) batch_ = std::make_unique<RecalledBatch>();
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

unsigned RecallingPipeline::retire(const PreparedBlock& block, const uint64_t* addresses, unsigned first, unsigned last,
                                   uint64_t next, uint64_t limit) {
    if (limit == NO_LIMIT && first == 0 && last == block.instructions) {
        retire_whole(block, addresses, next);
        return last;
    }
    leave_memo();
    return work(block, addresses, first, last, next, limit);
}

// From there on. `RESUMED`: what came before has been asked already, and the predictor of the branch.
template <bool RESUMED>
inline void RecallingPipeline::replay(const Walk& walk, Place place) {
    const RecalledBlock& block = walk.block;
    const BlockEvents& events = block.events;
    const uint64_t *const addresses = walk.addresses, end = events.end(), next = walk.next;
    const uint64_t now = moment_.now;
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
    leave(*step, {now + step->cycles, line});
}

void RecallingPipeline::retire_whole(const PreparedBlock& prepared, const uint64_t* addresses, uint64_t next) {
    const RecalledBlock& block = static_cast<const RecalledBlock&>(prepared);
    const BlockEvents& events = block.events;
    if (!events.listed || (state_ == BlockMemo::NO_STATE && !enter_memo())) [[unlikely]] {
        leave_memo();
        work(block, addresses, 0, block.instructions, next, NO_LIMIT);
        return;
    }
    replay<false>({block, addresses, next, (events.address & front_.line_mask) == moment_.line}, {});
}

void RecallingPipeline::replay_rest(const Walk& walk, Place from) { replay<true>(walk, from); }

// Of how the block ends, nothing is known, or it is to be checked.
void RecallingPipeline::end_unknown(Position at, const Walk& walk, Prediction prediction, BlockMemo::Transition* step) {
    if (at.state == state_) environment_.log.begin();
    Walk told = walk;
    told.prediction = prediction;
    if (step)
        check(told, *step);
    else
        record(told, walk.block.events.count());
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
    const uint64_t asked = moment_.now + question->cycles;  // of a fetch: before now
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

// Executes the block in detail. `told`: the events before this one have happened.
void RecallingPipeline::record(const Walk& walk, unsigned told) {
    restore_state();
    if (memo_.full()) {
        memo_.settle(counts_.amounts);
        memo_.clear();
        state_ = BlockMemo::NO_STATE;
        last_ = BlockMemo::NONE;
    }
    const PipelineCounts before = counts_;
    execute(walk, told);
    if (state_ != BlockMemo::NO_STATE) add_to_memo(walk, before);
    if (++recorded_ < MANY_RECORDS) return;
    recorded_ = 0;
    const uint64_t now = moment().now;
    if (now - recorded_from_ < MANY_RECORDS * TOO_FEW_CYCLES) {
        rests_until_ = now + REST_CYCLES;
        state_ = BlockMemo::NO_STATE;
    }
    recorded_from_ = now;
}

void RecallingPipeline::execute(const Walk& walk, unsigned told) {
    ReplayLog& log = environment_.log;
    log.cycle = moment_.now;
    log.fetch_cycle = moment_.now - front_.ahead;
    log.known = told;
    log.known_lines = walk.known_lines;
    if (walk.prediction) log.set_branch(*walk.prediction);
    environment_.begin(fetches_first(walk.block) ? 0 : 1, counts_.hits());
    work(walk.block, walk.addresses, 0, walk.block.instructions, walk.next, NO_LIMIT);
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
        const auto cycles = static_cast<int64_t>(answer.asked - moment_.now);
        if (answer.delay >> 32 || !fits(cycles)) return;
        BlockMemo::Transition& question = get(at, case_of(block, answer.event));
        question.cycles = static_cast<int32_t>(cycles);
        at = get(question.to, static_cast<uint32_t>(answer.delay)).to;
    }
    const Moment after = moment();
    const auto cycles = static_cast<int64_t>(after.now - moment_.now);
    const auto retired = static_cast<int64_t>(cycle_ - moment_.now);
    if (!fits(cycles) || !fits(retired)) return;
    const uint32_t what =
        first_outcome(block, fetches_first(block)) + outcome(log.prediction, walk.next != block.events.end());
    moment_ = after;
    state_ = save_state();
    BlockMemo::Transition& step = memo_.add(at, what, state_);
    step.cycles = static_cast<int32_t>(cycles);
    last_ = memo_.number(step);
    memo_.set_retired(step, static_cast<int32_t>(retired));
    memo_.set_counts(last_, counts_.amounts, before.amounts);
}

// What is about to be recalled is executed, too, and not counted.
void RecallingPipeline::check(const Walk& walk, const BlockMemo::Transition& step) {
    const PipelineCounts before = counts_;
    restore_state();
    execute(walk, walk.block.events.count());
    const PipelineCounts executed = std::exchange(counts_, before);
    PipelineCounts remembered = before;
    memo_.count(memo_.number(step), 1, remembered.amounts);
    auto differ = [&](const char* what) {
        throw std::logic_error(std::string("recalled otherwise than executed out: ") + what);
    };
    if (environment_.log.contradicted) differ("cycles of accesses");
    if (moment().now != moment_.now + step.cycles || cycle_ != moment_.now + memo_.retired(step)) differ("cycles");
    if (save_state() != step.to) differ("the state");
    if (remembered != executed) differ("counts");
}

// Makes the pipeline's own state what it is known to be.
void RecallingPipeline::restore_state() {
    if (std::exchange(restored_, true)) return;
    StateReader reader(memo_.bytes(state_));
    restore(reader, moment_);
}

// From now on the pipeline works by itself.
void RecallingPipeline::leave_memo() {
    if (state_ != BlockMemo::NO_STATE) restore_state();
    state_ = BlockMemo::NO_STATE;
}

// Whether the pipeline's state can be given a number, so that it is known from now on.
bool RecallingPipeline::enter_memo() {
    moment_ = moment();
    if (mode_ == RecallMode::NEVER || moment_.now < std::max(EARLIEST, rests_until_) ||
        moment_.line == FrontEnd::NO_LINE)
        return false;
    if (memo_.full()) {
        memo_.settle(counts_.amounts);
        memo_.clear();
    }
    state_ = save_state();
    last_ = BlockMemo::NONE;
    return true;
}

BlockMemo::State RecallingPipeline::save_state() {
    bytes_.clear();
    save(bytes_);
    return memo_.state(bytes_.bytes());
}

void RecallingPipeline::iterate(const PreparedBlock& block, const uint64_t* addresses) {
    leave_memo();
    work_iteration(block, addresses);
}

void RecallingPipeline::complete() {
    leave_memo();
    work_to_end();
}

void RecallingPipeline::elapse(uint64_t cycles) {
    leave_memo();
    work_kernel(cycles);
}

void RecallingPipeline::settle() {
    memo_.settle(counts_.amounts);
    counts_.settle(totals_, memory_);
}

}  // namespace perfemu
