#include "timing/recalling.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "timing/execution.hpp"
#include "timing/front_end.hpp"

namespace perfemu {

template <typename Counts>
static Counts difference(const Counts& now, const Counts& before) {
    Counts difference;
    std::ranges::transform(now, before, difference.begin(), std::minus());
    return difference;
}

RecallingPipeline::RecallingPipeline(const Config& config, MemorySystem& memory, BranchUnit& branches, uint64_t* totals)
    : memory_(memory), surroundings_(memory, branches), totals_(totals), mode_(mode_of(config.table("pipeline"))),
      ahead_(checked(config.table("pipeline"), "fetch_ahead_cycles", 0, 1000, 8)),
      aligned_(config.table("pipeline").boolean("fetch_aligned", false)) {}

RecallingPipeline::Mode RecallingPipeline::mode_of(const Config& keys) {
    if (!keys.has("recall")) return Mode::RECALL;
    const std::string& mode = keys.text("recall");
    if (mode == "check") return Mode::CHECK;
    if (mode == "never") return Mode::WORK;
    throw std::invalid_argument(keys.path("recall") + ": \"" + mode + "\" is not one of check, never");
}

void RecallingPipeline::prepare_recall(RecalledBlock& block, uint64_t address, std::span<const TimedOp> ops,
                                       std::span<const AccessSite> sites) {
    block.events = BlockEvents(address, ops, sites, memory_);
    block.instructions = static_cast<unsigned>(ops.size());
    block.first_case = next_case_;
    uint32_t cases = 2 * (OUTCOMES + block.events.count());
    // Where such a branch goes, which is no case, says how much of an aligned piece is fetched.
    const BranchKind branch = block.events.branch;
    const bool indirect =
        branch == BranchKind::INDIRECT || branch == BranchKind::INDIRECT_CALL || branch == BranchKind::RETURN;
    if (aligned_ && indirect) block.events.listed = false;
    if (next_case_ > std::numeric_limits<uint32_t>::max() - cases)
        block.events.listed = false;
    else
        next_case_ += cases;
}

unsigned RecallingPipeline::retire(const PreparedBlock& block, const uint64_t* addresses, unsigned first, unsigned last,
                                   uint64_t next, uint64_t limit) {
    unsigned all = static_cast<const RecalledBlock&>(block).instructions;
    if (limit == NO_LIMIT && first == 0 && last == all) {
        retire_whole(block, addresses, all, next);
        return all;
    }
    forget();
    return work(block, addresses, first, last, next, limit);
}

void RecallingPipeline::retire_whole(const PreparedBlock& prepared, const uint64_t* addresses, unsigned count,
                                     uint64_t next) {
    const RecalledBlock& block = static_cast<const RecalledBlock&>(prepared);
    const BlockEvents& events = block.events;
    if (!events.listed || (state_ == Memo::NONE && !recognize())) [[unlikely]] {
        forget();
        work(block, addresses, 0, count, next, NO_LIMIT);
        return;
    }
    Story& story = surroundings_.story;
    Walk walk{block, addresses, next, moment_, state_, state_, events.stretches[0].line != moment_.line};
    story.answers.clear();
    story.branch_told = false;
    story.touches.loads += events.loads;
    story.touches.stores += events.stores;
    uint64_t line = moment_.line;
    size_t site = 0;
    for (const BlockEvents::Stretch& stretch : events.stretches) {
        if (stretch.line != line) {
            line = stretch.line;
            if (memory_.touch_line_by(walk.began.now - ahead_, line)) [[likely]]
                ++story.touches.fetches;
            else if (!follow(walk, events.fetch_event(stretch, site), Request::FETCH, line))
                return;
        }
        for (; site != stretch.behind; ++site) {
            const BlockEvents::Access& access = events.accesses[site];
            if (memory_.touch_by(walk.began.now, access.stores, addresses[site], access.span, access.unaligned))
                [[likely]]
                continue;
            if (!follow(walk, events.access_event(stretch, site), access.stores ? Request::STORE : Request::LOAD, site))
                return;
        }
    }
    if (events.branch != BranchKind::NONE) {
        story.prediction = surroundings_.branches.resolve(events.branch_pc, events.branch, next, events.end);
        story.branch_told = true;
    }
    Memo::Step* step = memo_.find(walk.at, walk.outcome(story));
    if (!step) [[unlikely]] {
        learn(walk, events.count());
        return;
    }
    memo_.take(*step);
    cycle_ = walk.began.now + step->retired;
    state_ = step->to;
    moment_ = {walk.began.now + step->cycles, line};
    awake_ = false;
    if (mode_ == Mode::CHECK) [[unlikely]]
        check(walk, *step);
}

// An event is no mere hit: memory is asked at the cycle at which it was asked when this happened before. False: it
// never did, and the block has been worked out.
bool RecallingPipeline::follow(Walk& walk, unsigned event, Request request, uint64_t which) {
    const Memo::Step* question = memo_.find(walk.at, walk.event(event));
    if (!question) {
        learn(walk, event);
        return false;
    }
    const uint64_t asked = walk.began.now + question->cycles;  // fetch: before now
    Surroundings::Access access{.address = which};
    if (request != Request::FETCH) {
        const BlockEvents::Access& of_block = walk.block.events.accesses[which];
        access = {walk.addresses[which], of_block.size, walk.block.events.address + of_block.offset, of_block.elements};
    }
    const uint64_t delay = surroundings_.ask(event, request, access, asked) - asked;
    const Memo::Step* answer = delay >> 32 ? nullptr : memo_.find(question->to, static_cast<uint32_t>(delay));
    if (!answer) {
        learn(walk, event + 1);
        return false;
    }
    walk.at = answer->to;
    return true;
}

// Works the block out in detail. `told`: the events before this one have happened.
void RecallingPipeline::learn(const Walk& walk, unsigned told) {
    wake(walk.began, walk.from);
    if (memo_.full()) {
        memo_.settle(counts_);
        memo_.clear();
        state_ = Memo::NONE;
    }
    const Counts before = counts_;
    tell(walk, told);
    if (state_ != Memo::NONE) remember(walk, before);
}

void RecallingPipeline::tell(const Walk& walk, unsigned told) {
    Story& story = surroundings_.story;
    story.cycle = walk.began.now;
    story.fetch_cycle = walk.began.now - ahead_;
    story.told = told;
    surroundings_.begin(walk.fetches_first ? 0 : 1);
    work(walk.block, walk.addresses, 0, walk.block.instructions, walk.next, NO_LIMIT);
    surroundings_.end();
}

void RecallingPipeline::remember(const Walk& walk, const Counts& before) {
    state_ = Memo::NONE;
    auto follow = [this](Memo::State from, uint32_t what) -> Memo::Step& {
        Memo::Step* known = memo_.find(from, what);
        return known ? *known : memo_.add(from, what, memo_.fresh());
    };
    Memo::State at = walk.from;
    for (const Story::Answer& answer : surroundings_.story.answers) {
        const int64_t cycles = static_cast<int64_t>(answer.asked - walk.began.now);
        if (answer.delay >> 32 || cycles != static_cast<int32_t>(cycles)) return;
        Memo::Step& question = follow(at, walk.event(answer.event));
        question.cycles = static_cast<int32_t>(cycles);
        at = follow(question.to, static_cast<uint32_t>(answer.delay)).to;
    }
    const Moment after = moment();
    const int64_t cycles = static_cast<int64_t>(after.now - walk.began.now);
    const int64_t retired = static_cast<int64_t>(cycle_ - walk.began.now);
    if (cycles != static_cast<int32_t>(cycles) || retired != static_cast<int32_t>(retired)) return;
    bytes_.clear();
    save(bytes_);
    Memo::Step& step = memo_.add(at, walk.outcome(surroundings_.story), memo_.state(bytes_.bytes()));
    step.cycles = static_cast<int32_t>(cycles);
    step.retired = static_cast<int32_t>(retired);
    memo_.set_changes(step, difference(counts_, before));
    state_ = step.to;
    moment_ = after;
}

// What was recalled is worked out, too. Only the first of both counts.
void RecallingPipeline::check(const Walk& walk, const Memo::Step& step) {
    const uint64_t cycle = cycle_;
    const Counts before = counts_;
    wake(walk.began, walk.from);
    tell(walk, walk.block.events.count());
    const Moment after = moment();
    bytes_.clear();
    save(bytes_);
    const Counts worked = difference(counts_, before);
    counts_ = before;
    auto differ = [&](const char* what) {
        throw std::logic_error(std::string("recalled otherwise than worked out: ") + what);
    };
    if (surroundings_.story.contradicted) differ("cycles of accesses");
    if (cycle != cycle_ || after.now != moment_.now) differ("cycles");
    if (after.line != moment_.line) differ("the fetched line");
    if (!std::ranges::equal(bytes_.bytes(), memo_.bytes(state_))) differ("the state");
    if (memo_.changes<Counts>(step) != worked) differ("counts");
}

// Makes the pipeline's own state what it was at that moment.
void RecallingPipeline::wake(const Moment& moment, Memo::State state) {
    if (std::exchange(awake_, true)) return;
    StateReader reader(memo_.bytes(state));
    restore(reader, moment);
}

// From now on the pipeline works by itself.
void RecallingPipeline::forget() {
    if (state_ != Memo::NONE) wake(moment_, state_);
    state_ = Memo::NONE;
}

// Whether the pipeline's state can be given a number, so that it is known from now on.
bool RecallingPipeline::recognize() {
    moment_ = moment();
    if (mode_ == Mode::WORK || moment_.now < EARLIEST || moment_.line == FrontEnd::NO_LINE) return false;
    if (memo_.full()) {
        memo_.settle(counts_);
        memo_.clear();
    }
    bytes_.clear();
    save(bytes_);
    state_ = memo_.state(bytes_.bytes());
    return true;
}

void RecallingPipeline::iterate(const PreparedBlock& block, const uint64_t* addresses) {
    forget();
    work_iteration(block, addresses);
}

void RecallingPipeline::complete() {
    forget();
    work_to_end();
}

void RecallingPipeline::elapse(uint64_t cycles) {
    forget();
    work_kernel(cycles);
}

void RecallingPipeline::settle() {
    memo_.settle(counts_);
    for (unsigned probe = 0; probe < PROBE_COUNT; ++probe) totals_[probe] += counts_[probe];
    counts_ = {};
    Story::Touches& touches = surroundings_.story.touches;
    memory_.count_touches(touches.loads, touches.stores, touches.fetches);
    touches = {};
}

}  // namespace perfemu
